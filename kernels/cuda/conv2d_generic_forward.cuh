// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution with filters of any size, stride, padding, dilation and number of groups. A thread has one pool window
/// of 4 filters of one group, of one sample.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/shapes.hpp"

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kGenericFilters = 4;
inline constexpr int kGenericWarps = 4;

/// The pixels of x under tap (r, s) of a window whose first output is (p, q); 0 outside the image.
template <int kPool>
__device__ inline void load_under_tap(const Conv2dShape& shape, const float* plane, int p, int q, int r,
                                      int s, float (&x)[kPool * kPool]) {
#pragma unroll
  for (int k = 0; k < kPool * kPool; ++k) {
    const int h = (p + k / kPool) * shape.stride - shape.padding + r * shape.dilation;
    const int w = (q + k % kPool) * shape.stride - shape.padding + s * shape.dilation;
    const bool inside = h >= 0 && h < shape.in_height && w >= 0 && w < shape.in_width;
    x[k] = inside ? __ldg(plane + static_cast<std::size_t>(h * shape.in_width + w) * shape.batch) : 0.0F;
  }
}

/// @param shape  of a group
/// @param store  store.template window<kPool>(place, sums, last) takes what a thread has summed
/// Grid: windows / kGenericWarps, groups x filters of a group / kGenericFilters, batch / 32. A warp for each window.
/// Blocks on a multiprocessor at a time: 0 leaves them to nvcc.
template <int kPool, class Store>
__global__ void __launch_bounds__(kGenericWarps* kSamplesPerWarp, kPool == 2 ? 7 : 0)
    convolve_generic(Conv2dShape shape, ChannelGroups chains, OutputSize y, const float* x, const float* w,
                     Store store) {
  const int columns = y.width / kPool, rows = y.height / kPool;
  const int window = static_cast<int>(blockIdx.x * kGenericWarps + threadIdx.x / kSamplesPerWarp);
  const int row = window / columns, column = window - row * columns;
  const GroupBlock block(static_cast<int>(blockIdx.y), shape.out_channels, kGenericFilters);
  const int sample = static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp);
  if (row >= rows || sample >= shape.batch) return;

  const int taps = shape.kernel_height * shape.kernel_width;
  const std::size_t plane = static_cast<std::size_t>(shape.in_height) * shape.in_width * shape.batch;
  const std::size_t filter = static_cast<std::size_t>(shape.in_channels) * taps;
  x += static_cast<std::size_t>(block.group) * shape.in_channels * plane + sample;
  const float* weight = w + block.first * filter;
  constexpr int kWindow = kPool * kPool, kCount = kGenericFilters * kWindow;
  constexpr int kThreads = kGenericWarps * kSamplesPerWarp;
  LOCKSTEP_SHARED(float, earlier_floats, (kCount * kThreads));
  const EarlierSums<kCount> earlier(earlier_floats, threadIdx.x, kThreads);
  float sums[kCount] = {};
  const auto sum = [&](int i) -> float& { return sums[i]; };
  for (int c = 0, end = chains.per_group; c < shape.in_channels; ++c) {
    if (c == end) {
      earlier.fold(end == chains.per_group, sum);
      end += chains.per_group;
    }
    for (int r = 0; r < shape.kernel_height; ++r) {
      for (int s = 0; s < shape.kernel_width; ++s, ++weight) {
        float under[kPool * kPool];
        load_under_tap<kPool>(shape, x + c * plane, row * kPool, column * kPool, r, s, under);
#pragma unroll
        for (int f = 0; f < kGenericFilters; ++f) {
          const float factor = f < block.count ? __ldg(weight + f * filter) : 0.0F;
#pragma unroll
          for (int k = 0; k < kWindow; ++k)
            sums[f * kWindow + k] = fmaf(under[k], factor, sums[f * kWindow + k]);
        }
      }
    }
  }
  if (chains.per_group < shape.in_channels) earlier.finish(sum);
  LastDraw last;
#pragma unroll
  for (int f = 0; f < kGenericFilters; ++f) {
    if (f >= block.count) break;
    float of_filter[kWindow];
#pragma unroll
    for (int k = 0; k < kWindow; ++k) of_filter[k] = sums[f * kWindow + k];
    store.template window<kPool>({y.height, y.width, block.first + f, row, column, sample}, of_filter, last);
  }
}

/// Queues one launch; nothing if there are no outputs.
template <int kPool, class Store>
void launch_generic_forward(cudaStream_t stream, const Conv2dShape& s, const float* x, const float* w,
                            const Store& store) {
  const OutputSize y = {s.out_channels, s.out_height(), s.out_width()};
  const int windows = y.height / kPool * (y.width / kPool);
  if (windows == 0) return;
  const dim3 grid(pieces(windows, kGenericWarps), s.groups * pieces(s.group_outputs(), kGenericFilters),
                  pieces(s.batch, kSamplesPerWarp));
  launch(stream, {grid, dim3(kGenericWarps * kSamplesPerWarp)}, convolve_generic<kPool, Store>, s.group(),
         ChannelGroups(s.group_inputs()), y, x, w, store);
}

}  // namespace lockstep::LOCKSTEP_GPU
