// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data gradient of a convolution with filters of any size, stride, padding, dilation and number of groups. A thread
/// has one pixel of 4 channels of one group, of one sample.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/shapes.hpp"

#include <numeric>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kGenericChannels = 4;
inline constexpr int kGenericDataWarps = 4;

/// From one output that a pixel reaches to the next, and from its tap to the next one's, which is so much less.
struct TapSteps {
  int output, tap;

  explicit TapSteps(const Conv2dShape& shape)
      : output(shape.dilation / std::gcd(shape.stride, shape.dilation)),
        tap(shape.stride / std::gcd(shape.stride, shape.dilation)) {}
};

/// The outputs of one dimension that a pixel reaches: first, first + steps.output, ... below `end`; the first one
/// through tap `tap`, the next through tap - steps.tap.
struct TapRange {
  int first, end, tap;

  __device__ TapRange(int pixel, const Conv2dShape& shape, const TapSteps& steps, int taps, int outputs) {
    const int behind = pixel + shape.padding;  // of the first pixel under output 0
    const int reach = (taps - 1) * shape.dilation + 1;
    first = behind < reach ? 0 : (behind - reach) / shape.stride + 1;
    end = min(outputs, behind / shape.stride + 1);
    for (int tries = steps.output; tries > 1 && (behind - first * shape.stride) % shape.dilation != 0;
         --tries)
      ++first;
    const int pixels = behind - first * shape.stride;
    tap = pixels / shape.dilation;
    if (tap * shape.dilation != pixels) end = first;  // none
  }
};

/// @param shape  of a group
/// @param store  store.one(channel, row, column, sample, dx)
/// Grid: pixels of dx / kGenericDataWarps, groups x channels of a group / kGenericChannels, batch / 32. A warp for each
/// pixel.
template <class Store>
__global__ void __launch_bounds__(kGenericDataWarps* kSamplesPerWarp)
    generic_data_gradient(Conv2dShape shape, ChannelGroups chains, TapSteps steps, OutputSize y,
                          const float* dy, const float* w, Store store) {
  await_earlier_kernels();
  const int pixel = static_cast<int>(blockIdx.x * kGenericDataWarps + threadIdx.x / kSamplesPerWarp);
  const int row = pixel / shape.in_width, column = pixel - row * shape.in_width;
  const GroupBlock block(static_cast<int>(blockIdx.y), shape.in_channels, kGenericChannels);
  const int sample = static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp);
  if (row >= shape.in_height || sample >= shape.batch) return;

  const int within = block.first - block.group * shape.in_channels;
  const TapRange rows(row, shape, steps, shape.kernel_height, y.height);
  const TapRange columns(column, shape, steps, shape.kernel_width, y.width);
  const int taps = shape.kernel_height * shape.kernel_width;
  constexpr int kThreads = kGenericDataWarps * kSamplesPerWarp;
  LOCKSTEP_SHARED(float, earlier_floats, (kGenericChannels * kThreads));
  const EarlierSums<kGenericChannels> earlier(earlier_floats, threadIdx.x, kThreads);
  float sums[kGenericChannels] = {};
  const auto sum = [&](int i) -> float& { return sums[i]; };
  for (int k = 0, end = chains.per_group; k < shape.out_channels; ++k) {
    if (k == end) {
      earlier.fold(end == chains.per_group, sum);
      end += chains.per_group;
    }
    const std::size_t filter = static_cast<std::size_t>(block.group) * shape.out_channels + k;
    const float* weights = w + (filter * shape.in_channels + within) * taps;
    for (int p = rows.first, r = rows.tap; p < rows.end; p += steps.output, r -= steps.tap) {
      const float* line = dy + (filter * y.height + p) * y.width * shape.batch + sample;
#pragma unroll 2  // Four at a time take registers for which others wait: 40 warps at a time, not 48.
      for (int q = columns.first, s = columns.tap; q < columns.end; q += steps.output, s -= steps.tap) {
        const float gradient = load_input(line + static_cast<std::size_t>(q) * shape.batch);
        const float* weight = weights + r * shape.kernel_width + s;
#pragma unroll
        for (int c = 0; c < kGenericChannels; ++c)
          sums[c] = fmaf(gradient, c < block.count ? load_input(weight + c * taps) : 0.0F, sums[c]);
      }
    }
  }
  if (chains.per_group < shape.out_channels) earlier.finish(sum);
#pragma unroll
  for (int c = 0; c < kGenericChannels; ++c) {
    if (c < block.count) store.one(block.first + c, row, column, sample, sums[c] + 0.0F);
  }
}

/// Queues one launch.
template <class Store>
void launch_generic_data(cudaStream_t stream, const Conv2dShape& s, const float* dy, const float* w,
                         const Store& store) {
  const OutputSize y = {s.out_channels, s.out_height(), s.out_width()};
  const dim3 grid(pieces(s.in_height * s.in_width, kGenericDataWarps),
                  s.groups * pieces(s.group_inputs(), kGenericChannels), pieces(s.batch, kSamplesPerWarp));
  launch(stream, {grid, dim3(kGenericDataWarps * kSamplesPerWarp)}, generic_data_gradient<Store>, s.group(),
         ChannelGroups(s.group_outputs()), TapSteps(s), y, dy, w, store);
}

}  // namespace lockstep::LOCKSTEP_GPU
