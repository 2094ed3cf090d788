// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The correlation of convolutions with one channel in and out of each group. No channels can share a load, so
/// neighbouring pixels of a row share the weights, and keep as many chains of multiply-adds under way.
#include "kernels/cpu/lanes_inl.hpp"
#include "kernels/cpu/operands.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#if defined(LOCKSTEP_CPU_CONV2D_DEPTHWISE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_CONV2D_DEPTHWISE_INL_HPP
#undef LOCKSTEP_CPU_CONV2D_DEPTHWISE_INL_HPP
#else
#define LOCKSTEP_CPU_CONV2D_DEPTHWISE_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// Some pixels of a row, of the samples of a vector. Steps are in floats.
struct PixelRowCall {
  std::size_t rows = 0, columns = 0;  ///< rows and columns of taps
  std::ptrdiff_t source_row = 0, source_column = 0;
  std::ptrdiff_t weight_row = 0, weight_column = 0;
  std::ptrdiff_t source_pixel = 0, target_pixel = 0;  ///< from pixel to pixel
  const float* source = nullptr;
  const float* weights = nullptr;
  float* target = nullptr;
  float end = 0;  ///< added to each sum; not -0
};

inline constexpr std::size_t kPixelsAtOnce = 8;

/// Each pixel's sum is the chain of a TileCall with one channel.
template <std::size_t P>
HWY_NOINLINE void run_pixels(const PixelRowCall& call) {
  Lanes sum[P];
  LOCKSTEP_UNROLL
  for (std::size_t p = 0; p < P; ++p) sum[p] = hn::Zero(kTag);
  const float *source_row = call.source, *weight_row = call.weights;
  for (std::size_t r = 0; r < call.rows; ++r, source_row += call.source_row, weight_row += call.weight_row) {
    const float *source = source_row, *weight = weight_row;
    for (std::size_t s = 0; s < call.columns;
         ++s, source += call.source_column, weight += call.weight_column) {
      const Lanes w = hn::Set(kTag, *weight);
      LOCKSTEP_UNROLL
      for (std::size_t p = 0; p < P; ++p)
        sum[p] = multiply_add(w, hn::LoadU(kTag, source + static_cast<std::ptrdiff_t>(p) * call.source_pixel),
                              sum[p]);
    }
  }
  const Lanes end = hn::Set(kTag, call.end);
  LOCKSTEP_UNROLL
  for (std::size_t p = 0; p < P; ++p)
    hn::StoreU(hn::Add(sum[p], end), kTag, call.target + static_cast<std::ptrdiff_t>(p) * call.target_pixel);
}

/// Columns of a target that sum over the same taps: first, first + c.column_period, ...
struct ColumnRun {
  std::size_t first = 0, count = 0;
  TapRange taps;         ///< taps of the first column
  std::ptrdiff_t shift;  ///< source columns from one to the next
};

inline std::vector<ColumnRun> column_runs(const Correlation& c) {
  std::vector<ColumnRun> runs;
  const std::size_t period = c.column_period;
  for (std::size_t start = 0; start < std::min(period, c.columns.size()); ++start) {
    const TapRange* before = nullptr;
    for (std::size_t q = start; q < c.columns.size(); q += period) {
      const TapRange& taps = c.columns[q];
      if (before == nullptr || before->tap != taps.tap || before->count != taps.count) {
        runs.push_back({q, 1, taps, 0});
      } else {
        ++runs.back().count;
        runs.back().shift = taps.source - before->source;
      }
      before = &taps;
    }
  }
  return runs;
}

/// One channel.
inline void correlate_channel(const Correlation& c, const std::vector<ColumnRun>& runs, const float* source,
                              const float* weights, float end, float* target) {
  static constexpr auto kFunctions = make_table<kPixelsAtOnce>([](auto p) { return &run_pixels<p>; });
  const std::ptrdiff_t batch = c.batch;
  PixelRowCall call;
  call.source_column = batch * c.source_step;
  call.source_row = call.source_column * c.source_columns;
  call.weight_column = c.tap_step;
  call.weight_row = call.weight_column * c.kernel_columns;
  call.target_pixel = batch * c.column_period;
  call.end = end;
  for (const TapRange& row : c.rows) {
    call.rows = row.count;
    for (std::ptrdiff_t lane = 0; lane < batch; lane += kVector) {
      for (const ColumnRun& run : runs) {
        call.columns = run.taps.count;
        call.source_pixel = batch * run.shift;
        call.source = source + (row.source * c.source_columns + run.taps.source) * batch + lane;
        call.weights = weights + std::ptrdiff_t{row.tap} * c.kernel_columns + run.taps.tap;
        call.target = target + run.first * batch + lane;
        for_each_block(run.count, kPixelsAtOnce, [&](std::size_t /*first*/, std::size_t count) {
          kFunctions[count - 1](call);
          call.source += count * call.source_pixel;
          call.target += count * call.target_pixel;
        });
      }
    }
    target += c.columns.size() * batch;
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
