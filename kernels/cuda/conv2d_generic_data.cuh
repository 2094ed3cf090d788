// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data gradient of a convolution with filters of any size, stride and padding. A thread has one pixel of 4
/// channels of one sample.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/shapes.hpp"

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kGenericChannels = 4;
inline constexpr int kGenericDataWarps = 4;

/// The outputs of one dimension that a pixel reaches: first, first + 1, ... below `end`; the first one through tap
/// `tap`, the next through tap - stride.
struct TapRange {
  int first, end, tap;

  __device__ TapRange(int pixel, const Conv2dShape& shape, int taps, int outputs) {
    const int last_tap = pixel + shape.padding;  // the tap through which it reaches output 0
    first = last_tap < taps ? 0 : (last_tap - taps) / shape.stride + 1;
    end = min(outputs, last_tap / shape.stride + 1);
    tap = last_tap - first * shape.stride;
  }
};

/// @param store  store.one(channel, row, column, sample, dx)
/// Grid: pixels of dx / kGenericDataWarps, channels / kGenericChannels, batch / 32. A warp for each pixel.
template <class Store>
__global__ void __launch_bounds__(kGenericDataWarps* kSamplesPerWarp)
    generic_data_gradient(Conv2dShape shape, ChannelGroups groups, OutputSize y, const float* dy,
                          const float* w, Store store) {
  const int pixel = static_cast<int>(blockIdx.x * kGenericDataWarps + threadIdx.x / kSamplesPerWarp);
  const int row = pixel / shape.in_width, column = pixel - row * shape.in_width;
  const int first_channel = static_cast<int>(blockIdx.y) * kGenericChannels;
  const int sample = static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp);
  if (row >= shape.in_height || sample >= shape.batch) return;

  const TapRange rows(row, shape, shape.kernel_height, y.height);
  const TapRange columns(column, shape, shape.kernel_width, y.width);
  const int taps = shape.kernel_height * shape.kernel_width;
  const int channels = min(kGenericChannels, shape.in_channels - first_channel);
  constexpr int kThreads = kGenericDataWarps * kSamplesPerWarp;
  LOCKSTEP_SHARED(float, earlier_floats, (kGenericChannels * kThreads));
  const EarlierSums<kGenericChannels> earlier(earlier_floats, threadIdx.x, kThreads);
  float sums[kGenericChannels] = {};
  const auto sum = [&](int i) -> float& { return sums[i]; };
  for (int k = 0, end = groups.per_group; k < shape.out_channels; ++k) {
    if (k == end) {
      earlier.fold(end == groups.per_group, sum);
      end += groups.per_group;
    }
    const float* weights = w + (static_cast<std::size_t>(k) * shape.in_channels + first_channel) * taps;
    for (int p = rows.first, r = rows.tap; p < rows.end; ++p, r -= shape.stride) {
      const float* line = dy + (static_cast<std::size_t>(k) * y.height + p) * y.width * shape.batch + sample;
#pragma unroll 2  // Four at a time take registers for which others wait: 40 warps at a time, not 48.
      for (int q = columns.first, s = columns.tap; q < columns.end; ++q, s -= shape.stride) {
        const float gradient = __ldg(line + static_cast<std::size_t>(q) * shape.batch);
        const float* weight = weights + r * shape.kernel_width + s;
#pragma unroll
        for (int c = 0; c < kGenericChannels; ++c)
          sums[c] = fmaf(gradient, c < channels ? __ldg(weight + c * taps) : 0.0F, sums[c]);
      }
    }
  }
  if (groups.per_group < shape.out_channels) earlier.finish(sum);
#pragma unroll
  for (int c = 0; c < kGenericChannels; ++c) {
    if (c < channels) store.one(first_channel + c, row, column, sample, sums[c] + 0.0F);
  }
}

/// Queues one launch.
template <class Store>
void launch_generic_data(cudaStream_t stream, const Conv2dShape& s, const float* dy, const float* w,
                         const Store& store) {
  const OutputSize y = {s.out_channels, s.out_height(), s.out_width()};
  const dim3 grid(pieces(s.in_height * s.in_width, kGenericDataWarps),
                  pieces(s.in_channels, kGenericChannels), pieces(s.batch, kSamplesPerWarp));
  launch(stream, {grid, dim3(kGenericDataWarps * kSamplesPerWarp)}, generic_data_gradient<Store>, s,
         ChannelGroups(s.out_channels), y, dy, w, store);
}

}  // namespace lockstep::LOCKSTEP_GPU
