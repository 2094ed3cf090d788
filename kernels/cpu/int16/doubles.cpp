// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine that every processor has: integers in doubles, whose sums of up to kExactTerms products are exact.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int16/doubles.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using int16::GradientShape;

using Doubles = hn::CappedTag<double, kLine / 2>;
using DoubleLanes = hn::Vec<Doubles>;
using HalfLine = hn::Rebind<float, Doubles>;
constexpr Doubles kDoubles{};
constexpr HalfLine kFloats{};
constexpr std::size_t kWidth = HWY_LANES(double);

/// Accumulators are targets times vectors of columns: 24 registers of 32, or 12 of 16.
constexpr std::size_t kTargets = 6, kVectors = kManyRegisters ? 4 : 2, kTargetsOfHalf = 2 * kTargets;
/// The largest block of a weight gradient: filters times taps.
constexpr std::size_t kFilters = kManyRegisters ? 4 : 3, kTaps = kManyRegisters ? 6 : 3;

HWY_INLINE DoubleLanes load(const float* numbers) {
  return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, numbers));
}

/// Rounded to float: beyond the largest one to infinity, where Highway's plain code stays at that.
HWY_INLINE hn::Vec<HalfLine> to_floats(DoubleLanes numbers) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(kFloats, static_cast<float>(numbers.raw));
#else
  return hn::DemoteTo(kFloats, numbers);
#endif
}

/// The taps of one target pixel, a grid of channels * rows * columns of source and packed weights. Steps are in numbers.
struct TapGrid {
  std::size_t channels = 0, rows = 0, columns = 0;
  std::ptrdiff_t source_channel = 0, source_row = 0, source_column = 0;
  std::ptrdiff_t weight_channel = 0, weight_row = 0, weight_column = 0;
};

/// Some targets of one pixel, for some columns.
struct PixelCall {
  TapGrid taps;
  const float* source = nullptr;
  const double* weights = nullptr;
  const double* units = nullptr;  ///< [columns] of source and weights together
  const float* bias = nullptr;    ///< [targets]; null: zeros
  float* target = nullptr;
  std::size_t target_step = 0;  ///< floats from a target to the next one
};

template <std::size_t K, std::size_t V>
void run_pixel(const PixelCall& call) {
  DoubleLanes sum[K][V];
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) sum[k][v] = hn::Zero(kDoubles);
  }
  const TapGrid& taps = call.taps;
  for (std::size_t c = 0; c < taps.channels; ++c) {
    for (std::size_t r = 0; r < taps.rows; ++r) {
      const auto channel = static_cast<std::ptrdiff_t>(c), row = static_cast<std::ptrdiff_t>(r);
      const float* source = call.source + channel * taps.source_channel + row * taps.source_row;
      const double* weights = call.weights + channel * taps.weight_channel + row * taps.weight_row;
      for (std::size_t s = 0; s < taps.columns;
           ++s, source += taps.source_column, weights += taps.weight_column) {
        DoubleLanes x[V];
        LOCKSTEP_UNROLL
        for (std::size_t v = 0; v < V; ++v) x[v] = load(source + v * kWidth);
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) {
          const DoubleLanes w = hn::Set(kDoubles, weights[k]);
          LOCKSTEP_UNROLL
          for (std::size_t v = 0; v < V; ++v) sum[k][v] = hn::MulAdd(w, x[v], sum[k][v]);
        }
      }
    }
  }
  float* target = call.target;
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k, target += call.target_step) {
    const auto bias = hn::Set(kFloats, call.bias == nullptr ? 0.0F : call.bias[k]);
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const DoubleLanes unit = hn::LoadU(kDoubles, call.units + v * kWidth);
      hn::StoreU(hn::Add(to_floats(hn::Mul(sum[k][v], unit)), bias), kFloats, target + v * kWidth);
    }
  }
}

/// Some pixels of dy.
struct PixelBlock {
  std::size_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

/// All pixels, in blocks over which a sum in double stays exact.
std::vector<PixelBlock> exact_blocks(const GradientShape& g) {
  const std::size_t most = int16::kExactTerms / g.batch;
  const std::size_t columns = std::clamp<std::size_t>(most, 1, g.columns);
  const std::size_t rows = std::max<std::size_t>(1, most / columns);
  std::vector<PixelBlock> blocks;
  for (std::size_t row = 0; row < g.rows; row += rows)
    for (std::size_t column = 0; column < g.columns; column += columns)
      blocks.push_back({row, std::min(g.rows, row + rows), column, std::min(g.columns, column + columns)});
  return blocks;
}

/// Adds what some pixels give to the totals of K filters and T taps.
template <std::size_t K, std::size_t T>
void add_pixels(const GradientShape& g, const float* first_x, const std::size_t* taps, const float* first_dy,
                const PixelBlock& pixels, std::int64_t* totals) {
  DoubleLanes sum[K][T];
  const float *x[T], *dy[K];
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    dy[k] = first_dy + k * g.dy_channel;
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) sum[k][t] = hn::Zero(kDoubles);
  }
  LOCKSTEP_UNROLL
  for (std::size_t t = 0; t < T; ++t) x[t] = first_x + taps[t];
  for (std::size_t p = pixels.first_row; p < pixels.last_row; ++p) {
    for (std::size_t q = pixels.first_column; q < pixels.last_column; ++q) {
      const std::size_t at_x = p * g.x_row + q * g.x_column, at_dy = p * g.dy_row + q * g.batch;
      for (std::size_t n = 0; n < g.batch; n += kWidth) {
        DoubleLanes gradient[K];
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) gradient[k] = load(dy[k] + at_dy + n);
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t) {
          const DoubleLanes number = load(x[t] + at_x + n);
          LOCKSTEP_UNROLL
          for (std::size_t k = 0; k < K; ++k) sum[k][t] = hn::MulAdd(gradient[k], number, sum[k][t]);
        }
      }
    }
  }
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      totals[k * g.taps.size() + t] +=
          static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(kDoubles, sum[k][t])));
  }
}

}  // namespace

std::size_t targets_of_block(std::size_t batch) {
  return kManyRegisters && batch < kVectors * kWidth ? kTargetsOfHalf : kTargets;
}

/// @param source    [block of columns][feature][column of the block]
/// @param together  columns of a block
/// @param packed    [block of targets][source][tap][target of the block]
void correlate_doubles(const Correlation& c, const float* source, std::size_t together, const double* packed,
                       const double* units, const float* bias, float* target) {
  static constexpr auto kWhole = make_table<kTargets>([](auto k) { return &run_pixel<k, kVectors>; });
  static constexpr auto kHalf =
      make_table<kTargetsOfHalf>([](auto k) { return &run_pixel<k, kVectors / 2>; });
  const std::size_t batch = c.batch, sources = c.sources, pixels = c.rows.size() * c.columns.size();
  const std::size_t taps = std::size_t{1} * c.kernel_rows * c.kernel_columns;
  for (std::size_t n = 0, width = 0; n < batch; n += width) {
    const bool is_whole = batch - n >= kVectors * kWidth;
    const auto* const tiles = is_whole ? kWhole.data() : kHalf.data();
    width = (is_whole ? kVectors : kVectors / 2) * kWidth;
    const std::size_t in_block = n % together, block = n - in_block;
    const std::ptrdiff_t source_column = std::min(together, batch - block),
                         source_row = source_column * c.source_columns,
                         source_channel = source_row * c.source_rows;
    const float* const first_source = source + block * sources * c.source_rows * c.source_columns + in_block;
    const auto run = [&](std::size_t first, std::size_t size, std::size_t p, std::size_t q) {
      const TapRange &row = c.rows[p], &column = c.columns[q];
      const std::size_t rows = row.count, columns = column.count;
      const std::ptrdiff_t weight_column = size, weight_row = weight_column * c.kernel_columns,
                           weight_channel = weight_row * c.kernel_rows;
      PixelCall call;
      if (taps == 1 && rows == 1 && columns == 1)  // one long row of channels
        call.taps = {1, 1, sources, 0, 0, source_channel, 0, 0, weight_channel};
      else if (rows > 0 && columns > 0)
        call.taps = {sources,
                     rows,
                     columns,
                     source_channel,
                     source_row * c.source_step,
                     source_column * c.source_step,
                     weight_channel,
                     weight_row * c.tap_step,
                     weight_column * c.tap_step};
      call.source = first_source + source_row * row.source + source_column * column.source;
      call.weights = packed + first * sources * taps + weight_row * row.tap + weight_column * column.tap;
      call.units = units + n;
      call.bias = bias == nullptr ? nullptr : bias + first;
      call.target = target + (first * pixels + p * c.columns.size() + q) * batch + n;
      call.target_step = pixels * batch;
      tiles[size - 1](call);
    };
    int16::for_each_target_and_pixel(c, targets_of_block(batch), run);
  }
}

/// The part of dy that tiles read stays in the first-level cache while all taps pass over it.
void sum_gradients_doubles(const GradientShape& g, const float* x, const float* dy, std::int64_t* totals) {
  static constexpr auto kAdd = make_table<kFilters>(
      [](auto k) { return make_table<kTaps>([k](auto t) { return &add_pixels<k, t>; }); });
  constexpr std::size_t kCachedBytes = 96 * 1024;
  std::fill_n(totals, g.filters * g.taps.size(), 0);
  for (const PixelBlock& exact : exact_blocks(g)) {
    const std::size_t row_numbers = kFilters * g.batch * (exact.last_column - exact.first_column);
    const std::size_t rows = std::max<std::size_t>(1, kCachedBytes / (row_numbers * sizeof(float)));
    for_each_block(g.filters, kFilters, [&](std::size_t filter, std::size_t filters) {
      for (std::size_t row = exact.first_row; row < exact.last_row; row += rows) {
        PixelBlock some = exact;
        some.first_row = row;
        some.last_row = std::min(row + rows, exact.last_row);
        for_each_block(g.taps.size(), kTaps, [&](std::size_t tap, std::size_t taps) {
          kAdd[filters - 1][taps - 1](g, x, g.taps.data() + tap, dy + filter * g.dy_channel, some,
                                      totals + filter * g.taps.size() + tap);
        });
      }
    });
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(targets_of_block);
HWY_EXPORT(correlate_doubles);
HWY_EXPORT(sum_gradients_doubles);

namespace int16 {
namespace {

void correlate(const GroupProduct& p) {
  auto* const q = scratch<float, ScratchUse::kSource>(p.sources() * p.pixels() * p.batch());
  auto* const rounded = scratch<float, ScratchUse::kRounded>(p.filters());
  auto* const packed = scratch<double, ScratchUse::kWeights>(p.filters());
  // Columns of a tile lie next to each other, so that caches hold no others; one channel fits anyway.
  const std::size_t together = p.sources() > 1 ? 32 : p.batch();
  round_columns(p.sources() * p.pixels(), p.batch(), p.source, p.of_source, q, together);
  round_all(p.filters(), p.weights, p.of_weights, rounded);
  pack_weights(p.shape, HWY_DYNAMIC_DISPATCH(targets_of_block)(p.batch()), rounded, packed);
  HWY_DYNAMIC_DISPATCH(correlate_doubles)(p.shape, q, together, packed, p.units, p.bias, p.target);
}

void sum_gradients(const GroupGradient& g) {
  const std::size_t outputs = g.shape.filters * g.shape.dy_channel;
  auto* const x = scratch<float, ScratchUse::kSource>(g.image.channels * g.image.channel());
  auto* const dy = scratch<float, ScratchUse::kGradient>(outputs);
  round_image(g.image, g.x, g.of_x, x);
  round_columns(outputs / g.shape.batch, g.shape.batch, g.dy, g.of_dy, dy);
  HWY_DYNAMIC_DISPATCH(sum_gradients_doubles)(g.shape, x, dy, g.totals);
}

}  // namespace

const Engine kDoubles = {"doubles", [] { return true; }, correlate, sum_gradients, 0.5};

}  // namespace int16
}  // namespace lockstep::cpu
#endif  // HWY_ONCE
