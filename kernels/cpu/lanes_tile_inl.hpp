// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The register tile that convolution and matrix products share: several output channels times a few vectors
/// of samples.
///
/// One step multiplies V vectors of the source by K broadcast weights into K * V accumulators. These stay in
/// registers over all taps. With 5 x 4 vectors a step of 20 multiply-adds loads 4 vectors and 5 weights: far
/// from the load limit.
#include "kernels/cpu/lanes_inl.hpp"
#include "kernels/cpu/operands.hpp"

#include <cstddef>

#if defined(LOCKSTEP_CPU_LANES_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_LANES_TILE_INL_HPP
#undef LOCKSTEP_CPU_LANES_TILE_INL_HPP
#else
#define LOCKSTEP_CPU_LANES_TILE_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// One run of the tile, for some pixels one after the other. Target k, vector v: the sum over taps of weight * source.
/// Taps are a grid of groups * channels * rows * columns, visited in this order; a group is one chain of multiply-adds,
/// and groups are added in order (kernels/sum_cuts.hpp). Steps are in floats.
struct TileCall {
  std::size_t groups = 1, channels = 1, rows = 1, columns = 1;
  std::size_t last_channels = 1, last_columns = 1;  ///< sizes of the last group, which may be smaller
  std::size_t pixels = 1;                           ///< with the same taps; of one group
  std::ptrdiff_t source_pixel = 0, target_pixel = 0;
  /// From one vector of a tile of two to the other, where the widest has more.
  std::ptrdiff_t source_vector = kVector, target_vector = kVector;
  std::ptrdiff_t source_group = 0, weight_group = 0;
  std::ptrdiff_t source_channel = 0, source_row = 0, source_column = 0;
  std::ptrdiff_t weight_channel = 0, weight_row = 0, weight_column = 0;
  std::ptrdiff_t weight_lane = 1;  ///< from target k to target k + 1; used by strided tiles only
  std::ptrdiff_t target_lane = 0;
  const float* source = nullptr;
  const float* weights = nullptr;
  const float* start = nullptr;  ///< first terms of the chains of each target; null: 0
  const float* end = nullptr;    ///< added to each target's sum at last; null: 0, so that no sum is -0
  float* target = nullptr;
  bool joins = false;    ///< true: a group, to be added to those before it, which wait in the target
  bool finishes = true;  ///< true: the last group
};

inline constexpr std::size_t kTileTargets = kManyRegisters ? 10 : 6;  ///< in a tile of one or two vectors
inline constexpr std::size_t kWideTargets = kManyRegisters ? 5 : 6;   ///< in the widest tile
inline constexpr std::size_t kTileVectors = kManyRegisters ? 4 : 2;

/// How many targets a block should have, and how many vectors the next tile, when `vectors` of them are left.
constexpr std::size_t tile_targets(std::size_t vectors) {
  return vectors < kTileVectors ? kTileTargets : kWideTargets;
}
constexpr std::size_t tile_vectors(std::size_t vectors) {
  return vectors >= kTileVectors ? kTileVectors : vectors >= 2 ? 2 : 1;
}

/// Address of weight k. Every third lane is a base, so that x86 can reach each group with [base + 0, 1 or 2 *
/// lane].
template <bool kPacked, std::size_t K>
struct WeightCursor {
  static constexpr std::size_t kBases = kPacked ? 1 : (K + 2) / 3;
  const float* base[kBases];
  std::ptrdiff_t lane;

  HWY_INLINE WeightCursor(const float* weights, std::ptrdiff_t weight_lane) : lane(weight_lane) {
    LOCKSTEP_UNROLL
    for (std::size_t i = 0; i < kBases; ++i) base[i] = weights + static_cast<std::ptrdiff_t>(3 * i) * lane;
  }
  HWY_INLINE void advance(std::ptrdiff_t step) {
    LOCKSTEP_UNROLL
    for (std::size_t i = 0; i < kBases; ++i) base[i] += step;
  }
  HWY_INLINE float at(std::size_t k) const {
    if constexpr (kPacked) return base[0][k];
    return base[k / 3][static_cast<std::ptrdiff_t>(k % 3) * lane];
  }
};

/// K * V accumulators.
template <bool kPacked, std::size_t K, std::size_t V>
struct Tile {
  /// True of the widest tile, and of narrow ones, which a loop over taps would slow down.
  static constexpr bool kUnrollsRows =
      kPacked && ((V == kTileVectors && K == kWideTargets) || (V == 1 && K + 3 > kTileTargets));

  Lanes sum[K][V];

  HWY_INLINE void begin(const float* start) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      const Lanes value = start == nullptr ? hn::Zero(kTag) : hn::Set(kTag, start[k]);
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) sum[k][v] = value;
    }
  }

  /// One tap.
  HWY_INLINE void add_tap(const float* source, std::ptrdiff_t source_vector,
                          const WeightCursor<kPacked, K>& weights) {
    Lanes x[V];
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) x[v] = hn::LoadU(kTag, source + offset_of(v, source_vector));
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      const Lanes w = hn::Set(kTag, weights.at(k));
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) sum[k][v] = multiply_add(w, x[v], sum[k][v]);
    }
  }

  /// The taps of a group, whose rows have kColumns; 0: `columns`.
  template <std::size_t kColumns>
  HWY_INLINE void add_rows(const TileCall& call, const float* first_source, const float* first_weight,
                           std::size_t channels, std::size_t columns) {
    const std::ptrdiff_t source_column = call.source_column, weight_column = call.weight_column;
    const std::ptrdiff_t source_row = call.source_row, weight_row = call.weight_row;
    const std::ptrdiff_t source_vector = call.source_vector;
    const std::size_t rows = call.rows;
    for (std::size_t c = 0; c < channels; ++c) {
      const float *row_source = first_source, *row_weight = first_weight;
      first_source += call.source_channel;
      first_weight += call.weight_channel;
      for (std::size_t r = 0; r < rows; ++r) {
        const float* source = row_source;
        WeightCursor<kPacked, K> weights(row_weight, call.weight_lane);
        row_source += source_row;
        row_weight += weight_row;
        const auto tap = [&]() HWY_ATTR {
          add_tap(source, source_vector, weights);
          source += source_column;
          weights.advance(weight_column);
        };
        if constexpr (kColumns > 0) {
          LOCKSTEP_UNROLL
          for (std::size_t s = 0; s < kColumns; ++s) tap();
        } else {
          for (std::size_t s = 0; s < columns; ++s) tap();
        }
      }
    }
  }

  HWY_INLINE void add_group(const TileCall& call, const float* source, const float* weight,
                            std::size_t channels, std::size_t columns) {
    if constexpr (kUnrollsRows) {
      if (columns == 5) return add_rows<5>(call, source, weight, channels, columns);
      if (columns == 3) return add_rows<3>(call, source, weight, channels, columns);
    }
    add_rows<0>(call, source, weight, channels, columns);
  }

  /// Adds this group to those before, which wait in the target.
  HWY_INLINE void join(const TileCall& call, const float* target) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k, target += call.target_lane) {
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v)
        sum[k][v] = hn::Add(hn::LoadU(kTag, target + offset_of(v, call.target_vector)), sum[k][v]);
    }
  }

  HWY_INLINE void finish(const float* end) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      const Lanes value = end == nullptr ? hn::Zero(kTag) : hn::Set(kTag, end[k]);
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) sum[k][v] = hn::Add(sum[k][v], value);
    }
  }

  HWY_INLINE void store(const TileCall& call, float* target) const {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k, target += call.target_lane) {
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v)
        hn::StoreU(sum[k][v], kTag, target + offset_of(v, call.target_vector));
    }
  }

 private:
  static HWY_INLINE std::ptrdiff_t offset_of(std::size_t v, std::ptrdiff_t step) {
    constexpr bool kMayLieApart = V == 2 && kTileVectors > 2;
    return static_cast<std::ptrdiff_t>(v) * (kMayLieApart ? step : std::ptrdiff_t{kVector});
  }
};

/// One group, of some pixels. It loops over them, so that the multiply-adds of a pixel begin while the sums of
/// the one before are stored.
template <std::size_t K, std::size_t V>
HWY_INLINE void run_group(const TileCall& call) {
  const float* source = call.source;
  float* target = call.target;
  for (std::size_t p = call.pixels; p > 0; --p, source += call.source_pixel, target += call.target_pixel) {
    Tile<true, K, V> tile;
    tile.begin(call.start);
    tile.add_group(call, source, call.weights, call.last_channels, call.last_columns);
    if (call.joins) tile.join(call, target);
    if (call.finishes) tile.finish(call.end);
    tile.store(call, target);
  }
}

/// Groups of a matrix product, whose taps are in one row.
template <bool kPacked, std::size_t K, std::size_t V>
HWY_INLINE void run_groups(const TileCall& call) {
  const float *source = call.source, *weights = call.weights, *start = call.start;
  for (std::size_t g = 0;; ++g, source += call.source_group, weights += call.weight_group, start = nullptr) {
    const bool is_last = g + 1 == call.groups;
    Tile<kPacked, K, V> tile;
    tile.begin(start);
    tile.template add_rows<0>(call, source, weights, is_last ? call.last_channels : call.channels,
                              is_last ? call.last_columns : call.columns);
    if (g > 0) tile.join(call, call.target);
    if (is_last) tile.finish(call.end);
    tile.store(call, call.target);
    if (is_last) return;
  }
}

template <bool kPacked, std::size_t K, std::size_t V>
HWY_NOINLINE void run_tile(const TileCall& call) {
  if constexpr (kPacked) {  // all convolutions are
    if (call.groups == 1) return run_group<K, V>(call);
  }
  run_groups<kPacked, K, V>(call);
}

using TileFunction = void (*)(const TileCall&);

/// The tile for `vectors` in {1, 2, kTileVectors} and that many targets, at most as the constants above say.
template <bool kPacked>
TileFunction find_tile(std::size_t targets, std::size_t vectors) {
  static constexpr auto kOneVector =
      make_table<kTileTargets>([](auto k) { return &run_tile<kPacked, k, 1>; });
  static constexpr auto kTwoVectors =
      make_table<kTileTargets>([](auto k) { return &run_tile<kPacked, k, 2>; });
  static constexpr auto kWide =
      make_table<kWideTargets>([](auto k) { return &run_tile<kPacked, k, kTileVectors>; });
  if (vectors == 1) return kOneVector[targets - 1];
  return vectors == kTileVectors ? kWide[targets - 1] : kTwoVectors[targets - 1];
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
