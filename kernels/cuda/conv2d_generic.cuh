// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions with filters of any size, stride, padding, dilation and number of groups: forward, and the gradient of
/// the weights. (Of the data: kernels/cuda/conv2d_generic_data.cuh.)
#pragma once

#include "kernels/cuda/conv2d_lane_sums.cuh"
#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/shapes.hpp"

namespace lockstep::LOCKSTEP_GPU {

// Forward: a thread has one pool window of 4 filters of one group, of one sample.

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
    x[k] = inside ? load_input(plane + static_cast<std::size_t>(h * shape.in_width + w) * shape.batch) : 0.0F;
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
  await_earlier_kernels();
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
          const float factor = f < block.count ? load_input(weight + f * filter) : 0.0F;
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

// Weight gradient: a thread has 4 taps, counted through all channels of a group, of 4 of its filters.

/// Four taps in a row of a group's filters, from `first` on; beyond the last one they repeat it.
struct TapGroup {
  static constexpr int kTaps = 4;
  const float* planes[kTaps];  ///< of x
  int r[kTaps], s[kTaps];      ///< in pixels

  __device__ TapGroup(const WeightGradientArgs& args, int group, int first) {
    const Conv2dShape& shape = args.shape;
    const int channels = shape.in_channels;
    const int taps = shape.kernel_height * shape.kernel_width;
    const std::size_t plane = static_cast<std::size_t>(shape.in_height) * shape.in_width * shape.batch;
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const int tap = min(first + i, channels * taps - 1), channel = tap / taps;
      planes[i] = args.x + (static_cast<std::size_t>(group) * channels + channel) * plane;
      r[i] = (tap - channel * taps) / shape.kernel_width * shape.dilation;
      s[i] = (tap - channel * taps) % shape.kernel_width * shape.dilation;
    }
  }
  /// x under tap i for pixel (p, q) of dy; 0 outside the image.
  __device__ float at(const Conv2dShape& shape, int i, int p, int q, int sample) const {
    const int h = p * shape.stride - shape.padding + r[i], w = q * shape.stride - shape.padding + s[i];
    if (h < 0 || h >= shape.in_height || w < 0 || w >= shape.in_width) return 0;
    return load_input(planes[i] + static_cast<std::size_t>(h * shape.in_width + w) * shape.batch + sample);
  }
};

/// The sums of a thread, [filter][tap], and those for the bias behind them.
struct GenericSums {
  static constexpr int kFilters = 4, kTaps = TapGroup::kTaps, kBias = kFilters * kTaps;
  static constexpr int kCount = kBias + kFilters;
  float at[kCount] = {};

  __device__ void add_pixel(const WeightGradientArgs& args, const TapGroup& taps, const GroupBlock& filters,
                            int p, int q, int sample) {
    float x[kTaps];
#pragma unroll
    for (int i = 0; i < kTaps; ++i) x[i] = taps.at(args.shape, i, p, q, sample);
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      const int k = filters.first + min(f, filters.count - 1);
      const std::size_t pixel = static_cast<std::size_t>(k * args.y.height + p) * args.y.width + q;
      const float dy = load_input(args.dy + pixel * args.shape.batch + sample);
      at[kBias + f] += dy;
#pragma unroll
      for (int i = 0; i < kTaps; ++i) at[f * kTaps + i] = fmaf(x[i], dy, at[f * kTaps + i]);
    }
  }
};

/// Grid: tap groups x groups x filters of a group / 4, terms, grains.
__global__ void __launch_bounds__(GradientSplit::kMostUnitsOfTerm* kSamplesPerWarp)
    generic_weight_gradient(WeightGradientArgs args, int tap_groups) {
  await_earlier_kernels();
  using Totals = TermSums<GenericSums::kCount>;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int block = static_cast<int>(blockIdx.x), filter_block = block / tap_groups;
  const int first_tap = (block - filter_block * tap_groups) * GenericSums::kTaps;
  const GroupBlock filters(filter_block, args.shape.out_channels, GenericSums::kFilters);
  const TapGroup taps(args, filters.group, first_tap);
  const int warp = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
  const GradientUnit unit(args, warp);

  GenericSums sums;
  for (int n = unit.first_sample + static_cast<int>(threadIdx.x) % kSamplesPerWarp; n < unit.end_sample;
       n += kSamplesPerWarp) {
    for (int p = unit.first_row; p < unit.end_row; ++p)
      for (int q = 0; q < args.columns; ++q) sums.add_pixel(args, taps, filters, p, q, n);
  }
  const Totals all = {shared, args.split.units_of_term, warp};
  all.add(sums.at);
  __syncthreads();
  const int filter_taps = args.shape.in_channels * args.shape.kernel_height * args.shape.kernel_width;
  const ExactGradient& gradient = args.gradient;
  for (int i = threadIdx.x; i < GenericSums::kCount; i += blockDim.x) {
    const bool is_bias = i >= GenericSums::kBias;
    const int within = is_bias ? i - GenericSums::kBias : i / GenericSums::kTaps,
              filter = filters.first + within;
    const int tap = is_bias ? first_tap : first_tap + i % GenericSums::kTaps;
    if (within >= filters.count || tap >= filter_taps || (is_bias && first_tap > 0)) continue;
    if (is_bias) {
      add_exact(gradient.bias, filter, all.totals()[i]);
    } else {
      add_exact(gradient.weight, static_cast<std::size_t>(filter) * filter_taps + tap, all.totals()[i]);
    }
  }
}

/// Queues one launch, or several for more than 65,535 grains.
inline void launch_generic_weights(cudaStream_t stream, const WeightGradientArgs& args) {
  const Conv2dShape& s = args.shape;
  const int tap_groups = pieces(s.in_channels * s.kernel_height * s.kernel_width, GenericSums::kTaps);
  const int groups = args.y.filters / s.out_channels;
  const int blocks = tap_groups * groups * pieces(s.out_channels, GenericSums::kFilters);
  for_grains(args, [&](const WeightGradientArgs& part, unsigned grains) {
    const std::size_t shared_bytes =
        TermSums<GenericSums::kCount>::floats(args.split.units_of_term) * sizeof(float);
    launch(stream, {dim3(blocks, args.split.terms, grains), dim3(threads_of(args.split)), shared_bytes},
           generic_weight_gradient, part, tap_groups);
  });
}

}  // namespace lockstep::LOCKSTEP_GPU
