// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradient of a convolution with stride 1, square filters and no padding. All that a block reads must fit
/// into shared memory twice.
///
/// The threads are those of conv2d_window.cuh, but what slides comes from shared memory. Each number costs one
/// instruction there: all places but a row's are constants. And a multiprocessor gets some 20 bytes a clock from the L2
/// cache: of LeNet's second convolution, two filters and a channel do 9 fmas for each number from there; four filters
/// and two channels, as here, 18. While one block of a multiprocessor loads, the other one computes.
#pragma once

#include "kernels/cuda/conv2d_window.cuh"
#include "kernels/cuda/threads.cuh"

#include <algorithm>
#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

/// A warp copies pixels of 32 samples to shared memory, [pixel][sample], as they follow one another in global memory. A
/// thread has four neighbouring samples at a time; those that are not there are 0.
///
/// @param from     the first sample of the first pixel, aligned to 16 bytes; `batch` is a multiple of 4
/// @param samples  that are there: a multiple of 4, at most 32
__device__ inline void copy_pixels(const float* from, int batch, int pixels, int samples, float* to) {
  constexpr int kQuad = 4, kThreads = kSamplesPerWarp / kQuad;  ///< samples of a thread, threads of a pixel
  constexpr int kPixels = kSamplesPerWarp / kThreads,
                kTogether = 8;  ///< for a warp at once; so often, on their way
  const int lane = static_cast<int>(threadIdx.x) % kSamplesPerWarp;
  const int pixel = lane / kThreads, sample = lane % kThreads * kQuad;
  from += static_cast<std::size_t>(pixel) * batch + sample;
  to += pixel * kSamplesPerWarp + sample;
#pragma unroll 1
  for (int left = pixels - pixel; left > 0; left -= kTogether * kPixels) {
    const int loaded = sample < samples ? left : 0;
    float4 four[kTogether] = {};
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (i * kPixels < loaded) four[i] = *reinterpret_cast<const float4*>(from);
      from += kPixels * batch;
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (i * kPixels < left) *reinterpret_cast<float4*>(to + i * kPixels * kSamplesPerWarp) = four[i];
    to += kTogether * kPixels * kSamplesPerWarp;
  }
}

/// How many pixels of x and of dy a unit reads at most, of one channel and of one filter.
struct StagedPixels {
  int x, dy;

  __host__ __device__ StagedPixels(const WeightGradientArgs& args, int size)
      : x((args.split.rows + size - 1) * args.shape.in_width), dy(args.split.rows * args.y.width) {}
  std::size_t floats(int channels, int filters, int units) const {
    return std::size_t{1} * (channels * x + filters * dy) * units * kSamplesPerWarp;
  }
};

/// SlidingWindow, in shared memory.
template <int kSize>
struct StagedWindow {
  static constexpr int kSlots = kSize;
  const float* rows[kSize];  ///< this lane's first column of each row, of a round
  float at[kSize][kSlots];

  __device__ StagedWindow(const float* first, int row_stride) {
#pragma unroll
    for (int r = 0; r < kSize; ++r) rows[r] = first + r * row_stride;
  }
  __device__ void load(int /*first*/, int i) {
#pragma unroll
    for (int r = 0; r < kSize; ++r) at[r][i % kSlots] = rows[r][i * kSamplesPerWarp];
  }
  __device__ void end_round() {
#pragma unroll
    for (int r = 0; r < kSize; ++r) rows[r] += kSlots * kSamplesPerWarp;
  }
};

/// FilterPixels, in shared memory.
template <int kFilters>
struct StagedFilters {
  const float* at[kFilters];  ///< this lane's first pixel in each filter, of a round

  __device__ StagedFilters(const float* first, int filter_stride) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) at[f] = first + f * filter_stride;
  }
  __device__ void load(int i, float (&to)[kFilters]) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) to[f] = at[f][i * kSamplesPerWarp];
  }
  __device__ void end_round(int pixels) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) at[f] += pixels * kSamplesPerWarp;
  }
};

/// Grid and block: those of square_weight_gradient.
template <int kSize, int kFilters, int kChannels>
__global__ void __launch_bounds__(kMostWindowWarps<kChannels>* kSamplesPerWarp)
    staged_weight_gradient(WeightGradientArgs args) {
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const TapPlace<kFilters, kChannels> place(args);
  const StagedPixels most(args, kSize);
  const int x_stride = most.x * kSamplesPerWarp, dy_stride = most.dy * kSamplesPerWarp;
  float* const x = shared;                                        // [channel][unit][pixel][sample]
  float* const dy = shared + kChannels * place.units * x_stride;  // [filter][unit][pixel][sample]

  const auto batch = static_cast<std::size_t>(args.shape.batch);
  for (int piece = place.term * place.units + place.warp; piece < (kChannels + kFilters) * place.units;
       piece += kChannels * place.units) {
    const int what = piece / place.units, row_of = piece - what * place.units;
    const GradientUnit unit(args, row_of);
    const int rows = unit.end_row - unit.first_row, samples = unit.end_sample - unit.first_sample;
    if (rows <= 0) continue;
    if (what < kChannels) {
      const int channel = min(place.first_channel + what, args.shape.in_channels - 1);
      const int pixel = (channel * args.shape.in_height + unit.first_row) * args.shape.in_width;
      copy_pixels(args.x + pixel * batch + unit.first_sample, args.shape.batch,
                  (rows + kSize - 1) * args.shape.in_width, samples, x + piece * x_stride);
    } else {
      const int filter = min(place.first_filter + what - kChannels, args.y.filters - 1);
      const int pixel = (filter * args.y.height + unit.first_row) * args.y.width;
      copy_pixels(args.dy + pixel * batch + unit.first_sample, args.shape.batch, rows * args.y.width, samples,
                  dy + (piece - kChannels * place.units) * dy_stride);
    }
  }
  __syncthreads();

  TapSums<kSize, kFilters> sums;
  float bias[kFilters] = {};
  const GradientUnit unit(args, place.warp);
  const int lane = static_cast<int>(threadIdx.x) % kSamplesPerWarp;
  const float* x_row = x + (place.term * place.units + place.warp) * x_stride + lane;
  const float* dy_row = dy + place.warp * dy_stride + lane;
#pragma unroll 1
  for (int row = unit.first_row; row < unit.end_row; ++row) {
    const StagedFilters<kFilters> pixels(dy_row, place.units * dy_stride);
    if (place.channel == 0) add_to_bias(pixels, args.columns, bias);
    walk_row(StagedWindow<kSize>(x_row, args.shape.in_width * kSamplesPerWarp), pixels, args.columns, sums);
    x_row += args.shape.in_width * kSamplesPerWarp;
    dy_row += args.y.width * kSamplesPerWarp;
  }
  __syncthreads();  // the staged numbers are no longer needed
  place.add_totals(args, sums, bias, shared);
}

/// Filters of 5 x 5 taps. Those of 3 x 3 are for images with padding, whose units are too large.
struct StagedTile : WindowTile<4, 2> {
  static constexpr int kSize = 5, kBlocks = 2;  ///< on a multiprocessor

  static std::size_t shared_bytes(const WeightGradientArgs& args) {
    const std::size_t floats =
        StagedPixels(args, kSize).floats(kChannels, kFilters, args.split.units_of_term);
    return std::max(floats * sizeof(float), WindowTile::shared_bytes<kSize * kSize>(args.split));
  }
  /// True if every multiprocessor gets its blocks, and has room for them.
  static bool fits(const Chip& chip, const WeightGradientArgs& args) {
    constexpr std::size_t kReserved = 1024;  // shared memory of CUDA, for each block
    // Four samples at a time: of whole pixels, and of whole grains.
    const bool is_aligned = is_packable<4>(args.x, args.shape.batch) && is_packable<4>(args.dy, args.grain);
    return args.shape.padding == 0 && args.split.sample_groups == 1 && is_aligned &&
           kBlocks * warps(args.split) <= kMostWindowWarps<kChannels> &&
           kBlocks * (shared_bytes(args) + kReserved) <= chip.shared_bytes + kReserved &&
           rounds_of(chip, grid(args)) >= kBlocks;
  }
  static void queue(cudaStream_t stream, const WeightGradientArgs& args) {
    WindowTile::queue(stream, args, shared_bytes(args), staged_weight_gradient<kSize, kFilters, kChannels>);
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
