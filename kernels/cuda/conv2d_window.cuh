// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradient of a convolution with stride 1 and square filters.
///
/// A thread has all taps of one input channel and kFilters filters in registers, and walks along rows of dy
/// of one sample. Above it slides a window of x as large as a filter: for each pixel it loads one column of x
/// and kFilters numbers of dy, a step ahead, and does kSize * kSize * kFilters fmas.
#pragma once

#include "kernels/cuda/conv2d_lane_sums.cuh"
#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/sums.cuh"

namespace lockstep::LOCKSTEP_GPU {

/// How far loads run ahead: as far as registers allow, since kernels with few filters have few warps too.
template <int kFilters>
inline constexpr int kAhead = kFilters > 2 ? 1 : 3;

/// Zeroes what will be loaded before it is used, so for the compiler's sake alone: where images have no padding, nvcc
/// 13 then gives these numbers fewer registers and moves them about less (docs/gpu-kernels.md).
template <int kRows, int kColumns>
__device__ inline void clear(float (&numbers)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) numbers[i][j] = 0;
}

/// The columns of x above a thread's pixel, and kAhead more that are on their way. They take turns: column j
/// of a row is in slot j % kSlots.
template <int kSize, bool kPadded, int kFilters>
struct SlidingWindow {
  static constexpr int kSlots = kSize + kAhead<kFilters>;
  const float* rows[kSize];  ///< the next column of each row
  unsigned outside = 0;      ///< bits of rows outside the image
  float at[kSize][kSlots];

  /// @param plane  x of this lane's sample and channel
  __device__ SlidingWindow(const Conv2dShape& shape, const float* plane, int row) {
    const auto row_stride = static_cast<unsigned>(shape.in_width * shape.batch);
    if constexpr (!kPadded) plane += row * row_stride;
    if constexpr (!kPadded && kFilters == 2) clear(at);
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
      rows[r] = plane + r * row_stride;
      if constexpr (kPadded) {
        const int h = row + r - shape.padding;
        if (h < 0 || h >= shape.in_height) outside |= 1U << r;
        rows[r] = plane + min(max(h, 0), shape.in_height - 1) * row_stride;
      }
    }
  }
  /// Columns must be loaded in order, from 0 on; in padded images column 0 lies in the padding.
  __device__ void load(const Conv2dShape& shape, int column, int slot) {
    const int w = kPadded ? column - shape.padding : column;
    const bool is_there = !kPadded || (w >= 0 && w < shape.in_width);
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
      const bool inside = is_there && (!kPadded || (outside >> r & 1) == 0);
      at[r][slot] = inside ? __ldg(rows[r]) : 0.0F;
      if (is_there) rows[r] += shape.batch;
    }
  }
};

/// The sums of a thread.
template <int kSize, int kFilters>
struct TapSums {
  static constexpr int kTaps = kSize * kSize, kCount = kFilters * kTaps;
  float at[kCount] = {};  ///< [filter][tap]

  template <class Window>
  __device__ void add_pixel(const Window& window, int first_slot, const float (&dy)[kFilters]) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
#pragma unroll
      for (int r = 0; r < kSize; ++r)
#pragma unroll
        for (int s = 0; s < kSize; ++s) {
          float& sum = at[f * kTaps + r * kSize + s];
          sum = fmaf(window.at[r][(first_slot + s) % Window::kSlots], dy[f], sum);
        }
  }
};

/// dy of the same pixel in all filters of a thread. Filters beyond the last one repeat it.
template <int kFilters>
struct FilterPixels {
  const float* at[kFilters];

  /// @param dy  this lane's first pixel of the row in the first filter
  __device__ FilterPixels(const WeightGradientArgs& args, int first_filter, const float* dy) {
    const auto filter_stride = static_cast<unsigned>(args.y.height * args.y.width * args.shape.batch);
#pragma unroll
    for (int f = 0; f < kFilters; ++f) at[f] = dy + min(f, args.y.filters - 1 - first_filter) * filter_stride;
  }
  __device__ void load_next(int batch, float (&to)[kFilters]) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      to[f] = __ldg(at[f]);
      at[f] += batch;
    }
  }
};

/// One row of pixels of one sample. (Steps of pointers are int, and conditions as they are, because nvcc 13
/// then makes one instruction of a step, and two otherwise: 84 % instead of 69 % of this loop are fmas.)
template <int kSize, bool kPadded, int kFilters>
__device__ inline void walk_row(const WeightGradientArgs& args,
                                SlidingWindow<kSize, kPadded, kFilters> window, FilterPixels<kFilters> pixels,
                                TapSums<kSize, kFilters>& sums) {
  constexpr int kSlots = decltype(window)::kSlots, kFirst = kAhead<kFilters>;
  const int width = args.y.width;
  float dy[kSlots][kFilters];
  if constexpr (!kPadded) clear(dy);
#pragma unroll
  for (int j = 0; j < kSize - 1; ++j) window.load(args.shape, j, j);
#pragma unroll
  for (int i = 0; i < kFirst; ++i) {
    if (kFirst > 1 && i >= width) break;
    window.load(args.shape, i + kSize - 1, i + kSize - 1);
    pixels.load_next(args.shape.batch, dy[i]);
  }
#pragma unroll 1
  for (int first = 0; first < width; first += kSlots) {
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const bool is_last = first + i + 1 == width;
      if (kFirst == 1 ? !is_last : first + i + kFirst < width) {
        window.load(args.shape, first + i + kFirst + kSize - 1, (i + kFirst + kSize - 1) % kSlots);
        pixels.load_next(args.shape.batch, dy[(i + kFirst) % kSlots]);
      }
      sums.add_pixel(window, i, dy[i]);
      if (is_last) return;
    }
  }
}

/// The sum of dy over `count` pixels in a row, for the bias.
template <int kFilters>
__device__ inline void add_to_bias(FilterPixels<kFilters> pixels, int batch, int count,
                                   float (&sums)[kFilters]) {
  for (int i = 0; i < count; ++i) {
    float dy[kFilters];
    pixels.load_next(batch, dy);
#pragma unroll
    for (int f = 0; f < kFilters; ++f) sums[f] += dy[f];
  }
}

/// Grid: input channels x filters / kFilters, terms, grains.
template <int kSize, bool kPadded, int kFilters>
__global__ void __launch_bounds__(GradientSplit::kMostUnitsOfTerm* kSamplesPerWarp,
                                  kSize == 3 && kFilters == 5 ? 2 : 1)
    square_weight_gradient(WeightGradientArgs args) {
  using Sums = TapSums<kSize, kFilters>;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int channels = args.shape.in_channels, block = static_cast<int>(blockIdx.x);
  const int filter_block = block / channels, c = block - filter_block * channels;
  const int first_filter = filter_block * kFilters;
  const GradientUnit unit(args);
  const auto batch = static_cast<std::size_t>(args.shape.batch);
  const float* plane =
      args.x + static_cast<std::size_t>(c * args.shape.in_height) * args.shape.in_width * batch;
  const std::size_t first_pixel =
      static_cast<std::size_t>(first_filter * args.y.height + unit.first_row) * args.y.width;

  Sums sums;
  float bias[kFilters] = {};
  for (int n = unit.first_sample + static_cast<int>(threadIdx.x) % kSamplesPerWarp; n < unit.end_sample;
       n += kSamplesPerWarp) {
    const float* dy = args.dy + first_pixel * batch + n;
    if (c == 0) {
      const int count = (unit.end_row - unit.first_row) * args.y.width;
      add_to_bias(FilterPixels<kFilters>(args, first_filter, dy), args.shape.batch, count, bias);
    }
#pragma unroll 1
    for (int row = unit.first_row; row < unit.end_row; ++row) {
      walk_row(args, SlidingWindow<kSize, kPadded, kFilters>(args.shape, plane + n, row),
               FilterPixels<kFilters>(args, first_filter, dy), sums);
      dy += args.y.width * batch;
    }
  }
  const BlockSums<Sums::kCount> taps = {shared};
  const BlockSums<kFilters> biases = {shared + taps.floats(static_cast<int>(blockDim.x) / kSamplesPerWarp)};
  taps.add(sums.at);
  if (c == 0) biases.add(bias);
  __syncthreads();
  const ExactGradient& gradient = args.gradient;
  const int filters = min(kFilters, args.y.filters - first_filter);
  for (int i = threadIdx.x; i < filters * Sums::kTaps; i += blockDim.x) {
    const int f = i / Sums::kTaps, tap = i % Sums::kTaps;
    const std::size_t filter = static_cast<std::size_t>(first_filter + f) * channels + c;
    add_exact(gradient.weight, filter * Sums::kTaps + tap, taps.totals[i]);
  }
  if (c == 0 && static_cast<int>(threadIdx.x) < filters) {
    add_exact(gradient.bias, first_filter + threadIdx.x, biases.totals[threadIdx.x]);
  }
}

template <int kFiltersOfTile>
struct WindowTile {
  static constexpr int kFilters = kFiltersOfTile;

  /// Of a block, for filters of so many taps.
  template <int kTaps>
  static std::size_t shared_bytes(const GradientSplit& split) {
    const int warps = split.units_of_term;
    return (BlockSums<kTaps * kFilters>::floats(warps) + BlockSums<kFilters>::floats(warps)) * sizeof(float);
  }
  static dim3 grid(const WeightGradientArgs& args) {
    return dim3(args.shape.in_channels * pieces(args.y.filters, kFilters), args.split.terms,
                pieces(args.shape.batch, args.grain));
  }
  static double clocks(const Chip& chip, const WeightGradientArgs& args, int size) {
    const double pixels = 1.0 * args.split.sample_groups * args.split.rows * args.y.width;
    const double starts = 1.0 * args.split.sample_groups * args.split.rows * size * (size - 1);
    const double taps = 1.0 * size * size * kFilters;
    const double sums = 5 * kSamplesPerWarp * pieces(static_cast<int>(taps), kSamplesPerWarp);
    const WarpWork work = {pixels * taps + sums, pixels * (size + kFilters) + starts, 0};
    return guess_clocks(rounds_of(chip, grid(args)), args.split.units_of_term, work);
  }
};

/// Queues one launch, or several for more than 65,535 grains.
template <int kSize>
void launch_window(cudaStream_t stream, const Chip& chip, const WeightGradientArgs& args) {
  const auto guess = [&](auto tile) { return tile.clocks(chip, args, kSize); };
  const auto run = [&](auto tile) {
    using Tile = decltype(tile);
    const auto kernel = args.shape.padding == 0 ? square_weight_gradient<kSize, false, Tile::kFilters>
                                                : square_weight_gradient<kSize, true, Tile::kFilters>;
    for_grains(args, [&](const WeightGradientArgs& part, unsigned grains) {
      dim3 grid = Tile::grid(args);
      grid.z = grains;
      launch(stream,
             {grid, dim3(threads_of(args.split)), Tile::template shared_bytes<kSize * kSize>(args.split)},
             kernel, part);
    });
  };
  // 5 filters of 25 taps leave registers for 6 warps on a multiprocessor, too few to wait for loads in turn: on an H100
  // LeNet's second convolution took 97 us with them, 69 us with 3 filters and 66 us with 2.
  if constexpr (kSize < 5)
    run_best<WindowTile<5>, WindowTile<2>, WindowTile<1>>(guess, run);
  else
    run_best<WindowTile<2>, WindowTile<1>>(guess, run);
}

}  // namespace lockstep::LOCKSTEP_GPU
