// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The register tile of the weight gradient: several output channels times several taps, summed over pixels
/// and samples.
///
/// One step loads T vectors of x and K vectors of dy and makes K * T multiply-adds. 5 x 5 keep 31 registers
/// busy and need 10 loads for 25 multiply-adds. For a padding of 1, the tile is a filter of 3 x 3 for
/// three channels, if there are as many registers: it knows which taps lie outside the image, and multiplies no zeros.
#include "kernels/cpu/lanes_inl.hpp"
#include "kernels/cpu/operands.hpp"

#include <cstddef>

#if defined(LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#undef LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#else
#define LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

// Each size of tile is a function. Sanitizers take minutes for all of them, and find in small ones what is in large
// ones.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::size_t kMostOfATile = 2;
#else
inline constexpr std::size_t kMostOfATile = kManyRegisters ? 5 : 3;
#endif

/// The largest tile: output channels, and taps without and with the bias gradient. (That needs a register
/// for each channel, though no multiplier.)
inline constexpr std::size_t kGradientChannels = kMostOfATile;
inline constexpr std::size_t kGradientTaps = kMostOfATile;
inline constexpr std::size_t kGradientTapsWithBias = kMostOfATile == 5 ? 4 : kMostOfATile;

/// Output channels of a tile that is a filter, and its taps.
inline constexpr std::size_t kFilterChannels = 3, kFilterTaps = 9;

/// Some rows of pixels of 16 samples that follow one another in a chain (kernels/sum_cuts.hpp).
struct GradientRows {
  std::size_t first_row = 0;   ///< first row of output pixels
  std::size_t x = 0, dy = 0;   ///< offset of the first pixel's first sample, in floats
  std::size_t dy_channel = 0;  ///< in dy, to the next output channel
  std::size_t rows = 0;
  bool begins = false, ends = false;  ///< the chain of a unit
};

/// One run of the tile. Each (channel, tap) has a line of 16 lanes.
struct GradientCall {
  const GradientRows* parts = nullptr;
  std::size_t count = 0;                  ///< number of parts, at least one
  std::size_t columns = 0;                ///< output columns that are read
  std::size_t x_row = 0;                  ///< floats from one output row to the next, in x
  std::size_t x_column = 0;               ///< floats from one output column to the next, in x
  std::size_t dy_row = 0, dy_column = 0;  ///< and in dy
  const float* x = nullptr;
  const float* dy = nullptr;
  const std::size_t* tap = nullptr;  ///< offset of each tap in x, in floats
  float* term = nullptr;   ///< sums of units: the line of the first channel and tap; taps follow one another
  float* chain = nullptr;  ///< sums of the unit that calls leave unfinished, in such lines
  std::size_t line_channel = 0;  ///< floats from one channel to the next, in both
  std::size_t bias = 0;      ///< from `term` to the line of the first channel's bias; used by tiles with bias
  bool begins_term = false;  ///< nothing is in `term` yet
  // Members for a tile that is a filter:
  std::size_t x_line = 0, x_pixel = 0;  ///< floats from a row of the image to the next, from a pixel
  std::size_t last_row = 0;     ///< output row from which the last taps lie below the image; or past all
  bool has_right_edge = false;  ///< the last taps of the last column lie outside the image
};

template <std::size_t K, std::size_t T, bool kBias>
struct GradientTile {
  Lanes sum[K][T];
  Lanes bias[K];

  HWY_INLINE void begin() {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) sum[k][t] = hn::Zero(kTag);
      if constexpr (kBias) bias[k] = hn::Zero(kTag);
    }
  }

  /// Calls use(sum, place), where place is its lanes' in `lines`.
  template <class Use>
  HWY_INLINE void for_each(const GradientCall& call, float* lines, std::size_t lane, const Use& use) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      float* const of_channel = lines + k * call.line_channel + lane;
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) use(sum[k][t], of_channel + t * kLine);
      if constexpr (kBias) use(bias[k], of_channel + call.bias);
    }
  }

  /// Adds the products of a row of pixels. Every third channel of dy is a base, so that x86 can reach
  /// each group with [base + 0, 1 or 2 * channel].
  HWY_INLINE void add_row(const GradientCall& call, const float* const (&x)[T], const float* dy,
                          std::size_t channel) {
    constexpr std::size_t kBases = (K + 2) / 3;
    const std::size_t x_column = call.x_column, dy_column = call.dy_column;
    const float* base[kBases];
    LOCKSTEP_UNROLL
    for (std::size_t b = 0; b < kBases; ++b) base[b] = dy + 3 * b * channel;
    std::size_t at = 0;
    LOCKSTEP_UNROLL_BY_4
    for (std::size_t q = call.columns; q > 0; --q, at += x_column) {
      Lanes source[T];
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) source[t] = hn::LoadU(kTag, x[t] + at);
      LOCKSTEP_UNROLL
      for (std::size_t k = 0; k < K; ++k) {
        const Lanes gradient = hn::LoadU(kTag, base[k / 3] + k % 3 * channel);
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t) sum[k][t] = multiply_add(gradient, source[t], sum[k][t]);
        if constexpr (kBias) bias[k] = hn::Add(bias[k], gradient);
      }
      LOCKSTEP_UNROLL
      for (std::size_t b = 0; b < kBases; ++b) base[b] += dy_column;
    }
  }

  HWY_INLINE void add_rows(const GradientCall& call, const GradientRows& part, std::size_t lane) {
    const float* dy = call.dy + part.dy + lane;
    const float* x[T];
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) x[t] = call.x + call.tap[t] + part.x + lane;
    for (std::size_t p = 0; p < part.rows; ++p, dy += call.dy_row) {
      add_row(call, x, dy, part.dy_channel);
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) x[t] += call.x_row;
    }
  }
};

/// Without it g++ loads a vector anew for each of its multiply-adds: more loads than the processor has time for.
HWY_INLINE void keep_in_register(Lanes& vector) {
#if HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC
  asm("" : "+v"(vector.raw));
#else
  (void)vector;
#endif
}

/// A filter of 3 x 3 over an image with padding 1 and more than one row and column.
template <std::size_t K>
struct FilterTile : GradientTile<K, 9, false> {
  /// Adds a pixel's products with some rows and columns of the filter.
  template <std::size_t kFirstRow, std::size_t kLastRow, std::size_t kFirst, std::size_t kLast>
  HWY_INLINE void add_pixel(std::size_t pixel, const float* const (&x)[3], const float* dy,
                            std::size_t channel) {
    Lanes gradient[K];
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) gradient[k] = hn::LoadU(kTag, dy + k * channel);
    LOCKSTEP_UNROLL
    for (std::size_t r = kFirstRow; r < kLastRow; ++r) {
      LOCKSTEP_UNROLL
      for (std::size_t q = kFirst; q < kLast; ++q) {
        Lanes source = hn::LoadU(kTag, x[r] + q * pixel);
        keep_in_register(source);
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k)
          this->sum[k][3 * r + q] = multiply_add(gradient[k], source, this->sum[k][3 * r + q]);
      }
    }
  }

  template <std::size_t kFirstRow, std::size_t kLastRow>
  HWY_INLINE void add_row(const GradientCall& call, const float* first, const float* dy,
                          std::size_t channel) {
    const std::size_t x_column = call.x_column, dy_column = call.dy_column, pixel = call.x_pixel;
    const float* x[3] = {first, first + call.x_line, first + 2 * call.x_line};
    const auto next = [&]() HWY_ATTR {
      LOCKSTEP_UNROLL
      for (std::size_t r = kFirstRow; r < kLastRow; ++r) x[r] += x_column;
      dy += dy_column;
    };
    add_pixel<kFirstRow, kLastRow, 1, 3>(pixel, x, dy, channel);
    next();
    for (std::size_t q = call.columns - (call.has_right_edge ? 2 : 1); q > 0; --q, next())
      add_pixel<kFirstRow, kLastRow, 0, 3>(pixel, x, dy, channel);
    if (call.has_right_edge) add_pixel<kFirstRow, kLastRow, 0, 2>(pixel, x, dy, channel);
  }

  HWY_INLINE void add_rows(const GradientCall& call, const GradientRows& part, std::size_t lane) {
    const float* dy = call.dy + part.dy + lane;
    const float* x = call.x + *call.tap + part.x + lane;
    for (std::size_t p = part.first_row; p < part.first_row + part.rows; ++p) {
      if (p == 0) {
        add_row<1, 3>(call, x, dy, part.dy_channel);
      } else if (p == call.last_row) {
        add_row<0, 2>(call, x, dy, part.dy_channel);
      } else {
        add_row<0, 3>(call, x, dy, part.dy_channel);
      }
      x += call.x_row;
      dy += call.dy_row;
    }
  }
};

template <class Tile>
HWY_NOINLINE void run_gradient_tile(const GradientCall& call) {
  const auto load = [](Lanes& sum, const float* at) HWY_ATTR { sum = hn::LoadU(kTag, at); };
  const auto store = [](const Lanes& sum, float* at) HWY_ATTR { hn::StoreU(sum, kTag, at); };
  const auto add = [](const Lanes& sum, float* at)
                       HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(kTag, at), sum), kTag, at); };
  for (std::size_t lane = 0; lane < kLine; lane += kVector) {
    Tile tile;
    tile.begin();
    if (!call.parts[0].begins) tile.for_each(call, call.chain, lane, load);
    bool is_first = call.begins_term, ends = true;
    for (const GradientRows* part = call.parts; part != call.parts + call.count; ++part) {
      if (part->begins) tile.begin();
      tile.add_rows(call, *part, lane);
      ends = part->ends;
      if (!ends) continue;
      if (is_first) {
        tile.for_each(call, call.term, lane, store);
      } else {
        tile.for_each(call, call.term, lane, add);
      }
      is_first = false;
    }
    if (!ends) tile.for_each(call, call.chain, lane, store);
  }
}

using GradientFunction = void (*)(const GradientCall&);

/// The tile for that many channels and taps, each at least 1 and at most the constants above.
template <bool kBias>
GradientFunction find_gradient_tile(std::size_t channels, std::size_t taps) {
  static constexpr auto kTiles = make_table<kGradientChannels>([](auto k) {
    return make_table < kBias
               ? kGradientTapsWithBias
               : kGradientTaps > ([k](auto t) { return &run_gradient_tile<GradientTile<k, t, kBias>>; });
  });
  return kTiles[channels - 1][taps - 1];
}

/// Finds the tile of a filter; null where registers are few.
template <std::size_t kMost = kManyRegisters ? kFilterChannels : 0>
GradientFunction find_filter_tile(std::size_t channels) {
  if constexpr (kMost > 0) {
    static constexpr auto kTiles =
        make_table<kMost>([](auto k) { return &run_gradient_tile<FilterTile<k>>; });
    return kTiles[channels - 1];
  }
  return nullptr;
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
