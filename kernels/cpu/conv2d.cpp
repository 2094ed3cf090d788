// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution forward and its data gradient: one correlation kernel, run over different taps.
#include "common/error.hpp"
#include "kernels/cpu/operands.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv2d.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/conv2d_depthwise_inl.hpp"
#include "kernels/cpu/conv2d_window_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// One block of targets, one block of samples, all pixels.
void correlate_pixels(const Correlation& c, TileCall call, TileFunction tile, std::ptrdiff_t size,
                      std::size_t at_once) {
  const TileCall origin = call;
  for (const TapRange& row : c.rows) {
    call.rows = row.count;
    call.source = origin.source + std::ptrdiff_t{row.source} * c.source_columns * c.batch;
    call.weights = origin.weights + row.tap * c.kernel_columns * size;
    for_each_block(c.columns.size(), at_once, [&](std::size_t first, std::size_t count) {
      correlate_columns(c, call, tile, size, c.batch, first, first + count);
    });
    call.target += c.columns.size() * c.batch;
  }
}

/// All blocks of targets, one block of samples, all pixels; RowWindow says why.
/// @param source, target  of the first sample
void correlate_windows(const Correlation& c, RowWindow& window, const float* source, const float* packed,
                       const float* ends, std::size_t vectors, std::size_t block, float* target) {
  const std::size_t filter = c.filter(), target_row = c.columns.size() * c.batch;
  for (std::size_t p = 0; p < c.rows.size(); ++p) {
    const TapRange& row = c.rows[p];
    for_each_block(c.columns.size(), window.columns_at_once(), [&](std::size_t first, std::size_t count) {
      window.copy(row, source, first, first + count);
      for_each_block(c.targets, block, [&](std::size_t first_target, std::size_t size) {
        TileCall call = tile_call(c, size);
        window.use_in(call);
        call.rows = row.count;
        call.weights = packed + first_target * filter + row.tap * c.kernel_columns * size;
        call.end = ends == nullptr ? nullptr : ends + first_target;
        call.target = target + first_target * call.target_lane + p * target_row;
        for_each_block(count, columns_at_once(c, vectors), [&](std::size_t at, std::size_t some) {
          correlate_columns(c, call, find_tile<true>(size, vectors), size, vectors * kVector, first + at,
                            first + at + some);
        });
      });
    });
  }
}

/// True if it is a matrix product with as many columns as a wide tile has. multiply() is then the faster way to the
/// same bits. Stepping over pixels of the source by a stride, it gathers and scatters, which few sources do not pay
/// for.
bool is_product(const Correlation& c) {
  constexpr int kFewSources = 32;
  const auto pixels = [](const std::vector<TapRange>& axis) {
    return static_cast<std::size_t>(std::ranges::count(axis, 1, &TapRange::count));
  };
  const auto passes_over = [&](const std::vector<TapRange>& axis, std::size_t source_pixels) {
    return axis.size() != source_pixels || pixels(axis) != axis.size();
  };
  const bool gathers = passes_over(c.rows, c.source_rows) || passes_over(c.columns, c.source_columns);
  return c.kernel_rows == 1 && c.kernel_columns == 1 && (!gathers || c.sources >= kFewSources) &&
         pixels(c.rows) * pixels(c.columns) * c.batch >= kTileVectors * kVector;
}

/// Computes one group that is_product(). All that a tile reads is copied first: channels of an image are
/// so far from each other that they would push each other out of the first-level cache.
/// @param packed  [block of targets][source][target in block], for wide tiles
void multiply(const Correlation& c, const float* source, const float* packed, const float* ends,
              float* target) {
  static thread_local Scratch scratch;
  const std::size_t sources = c.sources, targets = c.targets, batch = c.batch;
  const PixelPairs pixels(c);
  const std::size_t columns = pixels.source.size() * batch;
  const std::size_t source_channel = c.source_channel(), target_channel = c.target_channel();
  if (columns < target_channel) {
    for (std::size_t k = 0; k < targets; ++k)
      std::fill_n(target + k * target_channel, target_channel, ends == nullptr ? 0.0F : ends[k]);
  }
  HWY_ALIGN float apart[kWideTargets * kTileVectors * kVector];
  float* const window = scratch.floats(sources * kTileVectors * kVector);
  for (std::size_t n = 0, width = 0; n < columns; n += width) {
    const std::size_t vectors = tile_vectors((columns - n) / kVector);
    width = vectors * kVector;
    if (pixels.is_dense) {
      for (std::size_t s = 0; s < sources; ++s)
        std::copy_n(source + s * source_channel + n, width, window + s * width);
    } else {
      for_each_pixel(pixels.source, batch, n, width,
                     [&](std::size_t first, std::size_t size, std::size_t place) {
                       for (std::size_t s = 0; s < sources; ++s)
                         std::copy_n(source + s * source_channel + place, size, window + s * width + first);
                     });
    }
    const std::size_t lane = n % batch, place = pixels.target[n / batch] + lane;
    const bool is_together = pixels.is_dense || lane + width <= batch;  // in the target, as a tile writes it
    for_each_block(targets, kWideTargets, [&](std::size_t first, std::size_t size) {
      TileCall call = tile_call(c, size);
      call.source_channel = width;
      call.source_group = call.channels * width;
      call.target_lane = is_together ? target_channel : width;
      call.source = window;
      call.weights = packed + first * sources;
      if (ends != nullptr) call.end = ends + first;
      call.target = is_together ? target + first * target_channel + place : apart;
      find_tile<true>(size, vectors)(call);
      if (is_together) return;
      for_each_pixel(pixels.target, batch, n, width, [&](std::size_t at, std::size_t count, std::size_t to) {
        for (std::size_t k = 0; k < size; ++k)
          std::copy_n(apart + k * width + at, count, target + (first + k) * target_channel + to);
      });
    });
  }
}

/// Computes one group.
void correlate(const Correlation& c, const float* source, const float* weights, const float* bias,
               float* target) {
  static thread_local Scratch scratch;
  const std::size_t targets = c.targets, batch = c.batch, filter = c.filter();
  float* packed = scratch.floats(targets * filter + (bias == nullptr ? 0 : targets));
  LOCKSTEP_CHECK(packed != nullptr);  // a convolution has weights
  const bool multiplies = is_product(c);
  const std::size_t block = multiplies ? kWideTargets : tile_targets(batch / kVector);
  pack_weights(c, block, weights, packed);
  float* const ends = bias == nullptr ? nullptr : packed + targets * filter;
  for (std::size_t k = 0; ends != nullptr && k < targets; ++k) ends[k] = bias[k] + 0.0F;  // 0 for -0
  if (multiplies) return multiply(c, source, packed, ends, target);
  for (std::size_t n = 0, vectors = 0; n < batch; n += vectors * kVector) {
    vectors = tile_vectors((batch - n) / kVector);
    RowWindow window(c, vectors * kVector, (targets + block - 1) / block, targets * filter);
    if (window.is_worth_it()) {
      correlate_windows(c, window, source + n, packed, ends, vectors, block, target + n);
      continue;
    }
    for_each_block(targets, block, [&](std::size_t first, std::size_t size) {
      TileCall call = tile_call(c, size);
      call.source = source + n;
      call.weights = packed + first * filter;
      call.end = ends == nullptr ? nullptr : ends + first;
      call.target = target + first * call.target_lane + n;
      correlate_pixels(c, call, find_tile<true>(size, vectors), size, columns_at_once(c, vectors));
    });
  }
}

}  // namespace

void call_correlate(const Correlation& c, const float* source, const float* weights, const float* bias,
                    float* target) {
  const bool is_depthwise = c.groups > 1 && c.sources == 1 && c.targets == 1;
  const std::vector<ColumnRun> runs = is_depthwise ? column_runs(c) : std::vector<ColumnRun>();
  for (int g = 0; g < c.groups; ++g) {
    if (is_depthwise) {
      correlate_channel(c, runs, source, weights, bias == nullptr ? 0.0F : *bias + 0.0F, target);
    } else {
      correlate(c, source, weights, bias, target);
    }
    source += c.sources * c.source_channel();
    weights += c.targets * c.filter();
    if (bias != nullptr) bias += c.targets;
    target += c.targets * c.target_channel();
  }
}

int call_channels_at_once(std::size_t batch) {
  return static_cast<int>(tile_targets(batch / kVector));
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_correlate);
HWY_EXPORT(call_channels_at_once);

int channels_at_once(int batch) {
  return HWY_DYNAMIC_DISPATCH(call_channels_at_once)(batch);
}

namespace {

ConvAxis rows_of(const Conv2dShape& s) {
  return {s.in_height, s.out_height(), s.read_height(), s.kernel_height, s.stride, s.padding, s.dilation};
}
ConvAxis columns_of(const Conv2dShape& s) {
  return {s.in_width, s.out_width(), s.read_width(), s.kernel_width, s.stride, s.padding, s.dilation};
}

/// Over all pixels.
double taps_in(const std::vector<TapRange>& axis) {
  double taps = 0;
  for (const TapRange& pixel : axis) taps += pixel.count;
  return taps;
}

}  // namespace

double conv2d_flops(const Conv2dShape& s) {
  const double pairs = static_cast<double>(s.group_inputs()) * s.out_channels;
  return 2 * pairs * s.batch * taps_in(forward_taps(rows_of(s))) * taps_in(forward_taps(columns_of(s)));
}

Correlation forward_correlation(const Conv2dShape& s) {
  const std::ptrdiff_t filter = static_cast<std::ptrdiff_t>(s.kernel_height) * s.kernel_width;
  return {.batch = s.batch,
          .groups = s.groups,
          .sources = s.group_inputs(),
          .source_rows = s.in_height,
          .source_columns = s.in_width,
          .targets = s.group_outputs(),
          .kernel_rows = s.kernel_height,
          .kernel_columns = s.kernel_width,
          .source_step = s.dilation,
          .tap_step = 1,
          .weight_target = filter * s.group_inputs(),
          .weight_source = filter,
          .rows = forward_taps(rows_of(s)),
          .columns = forward_taps(columns_of(s))};
}

Correlation backward_correlation(const Conv2dShape& s) {
  const std::ptrdiff_t filter = static_cast<std::ptrdiff_t>(s.kernel_height) * s.kernel_width;
  const ConvAxis rows = rows_of(s), columns = columns_of(s);
  return {.batch = s.batch,
          .groups = s.groups,
          .sources = s.group_outputs(),
          .source_rows = s.out_height(),
          .source_columns = s.out_width(),
          .targets = s.group_inputs(),
          .kernel_rows = s.kernel_height,
          .kernel_columns = s.kernel_width,
          .source_step = rows.gradient_step(),
          .tap_step = rows.gradient_tap_step(),
          .column_period = s.stride,
          .weight_target = filter,
          .weight_source = filter * s.group_inputs(),
          .rows = backward_taps(rows),
          .columns = backward_taps(columns)};
}

void conv2d_forward(const Conv2dShape& s, const float* x, const float* w, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(call_correlate)(forward_correlation(s), x, w, b, y);
}

void conv2d_backward_data(const Conv2dShape& s, const float* dy, const float* w, const float* b, float* dx) {
  HWY_DYNAMIC_DISPATCH(call_correlate)(backward_correlation(s), dy, w, b, dx);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
