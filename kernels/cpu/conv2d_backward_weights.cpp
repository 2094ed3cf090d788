// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, weight and bias gradients: blocks of channels, rows (so that dy comes from cache), taps.
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/conv2d_padding.hpp"
#include "kernels/cpu/lanes_scratch.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv2d_backward_weights.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/conv2d_weights_tile_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// dy of a block of channels and rows should stay in the second-level cache while all taps pass over it.
constexpr std::size_t kRowBlockBytes = (kManyRegisters ? 192 : 14) * 1024;

std::size_t rows_per_block(const Conv2dShape& s, std::size_t channels) {
  const std::size_t row_bytes = channels * s.out_width() * s.batch * sizeof(float);
  const auto rows = static_cast<std::size_t>(s.out_height());
  const std::size_t fit = std::clamp<std::size_t>(kRowBlockBytes / row_bytes, 1, rows);
  const std::size_t blocks = (rows + fit - 1) / fit;
  return (rows + blocks - 1) / blocks;
}

GradientCall gradient_call(const Conv2dShape& s, const PaddedImage& x) {
  const std::size_t batch = s.batch, columns = s.out_width();
  GradientCall call;
  call.columns = s.stride == 1 ? 1 : columns;
  call.run = s.stride == 1 ? columns * batch : batch;
  call.x_column = batch * s.stride;
  call.x_row = batch * s.stride * x.width;
  call.dy_channel = batch * columns * s.out_height();
  return call;
}

/// All taps of one block of channels and rows; the first tile takes the bias gradient along.
void add_taps(GradientCall call, std::size_t channels, const std::vector<std::size_t>& taps) {
  float* const partial = call.partial;
  for (std::size_t first = 0; first < taps.size();) {
    const std::size_t limit = first == 0 ? kGradientTapsWithBias : kGradientTaps;
    const std::size_t left = taps.size() - first, tiles = (left + limit - 1) / limit;
    const std::size_t size = (left + tiles - 1) / tiles;
    call.tap = taps.data() + first;
    call.partial = partial + first * kLine;
    find_gradient_tile(channels, size, first == 0)(call);
    first += size;
  }
}

/// dw and db of one block of channels. `lines` has room for (taps + 1) lines of each channel.
void gradient_of_channels(const Conv2dShape& s, GradientCall call, std::size_t channels,
                          const std::vector<std::size_t>& taps, float* lines, float* dw, float* db) {
  const std::size_t rows = s.out_height(), block = rows_per_block(s, channels);
  call.partial = lines;
  call.partial_channel = (taps.size() + 1) * kLine;
  call.bias = lines + taps.size() * kLine;
  std::fill(lines, lines + channels * call.partial_channel, 0.0F);
  const float *x = call.x, *dy = call.dy;
  for (std::size_t row = 0; row < rows; row += block) {
    call.rows = std::min(block, rows - row);
    call.x = x + row * call.x_row;
    call.dy = dy + row * s.out_width() * s.batch;
    add_taps(call, channels, taps);
  }
  for (std::size_t k = 0; k < channels; ++k) {
    sum_lines(lines + k * call.partial_channel, taps.size(), dw + k * taps.size());
    sum_lines(call.bias + k * call.partial_channel, 1, db + k);
  }
}

}  // namespace

void call_backward_weights(const Conv2dShape& s, const PaddedImage& x, const std::vector<std::size_t>& taps,
                           const float* dy, float* dw, float* db) {
  static thread_local Scratch scratch;
  float* lines = scratch.floats(kGradientChannels * (taps.size() + 1) * kLine);
  for_each_block(s.out_channels, kGradientChannels, [&](std::size_t first, std::size_t channels) {
    GradientCall call = gradient_call(s, x);
    call.x = x.data;
    call.dy = dy + first * call.dy_channel;
    gradient_of_channels(s, call, channels, taps, lines, dw + first * taps.size(), db + first);
  });
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_backward_weights);

void conv2d_backward_weights(const Conv2dShape& s, const float* x, const float* dy, float* dw, float* db) {
  static thread_local Scratch scratch;
  const PaddedImage image = pad_image(s, x, scratch);
  HWY_DYNAMIC_DISPATCH(call_backward_weights)(s, image, tap_offsets(s, image), dy, dw, db);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
