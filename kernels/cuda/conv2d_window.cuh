// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradient of a convolution with stride 1 and square filters.
///
/// A thread has all taps of one input channel and kFilters filters in registers. It walks along rows of dy
/// of one sample. Above it slides a window of x as large as a filter: for each pixel it loads one column of x
/// and kFilters numbers of dy, a step ahead, and does kSize * kSize * kFilters fmas.
///
/// A block may have two channels, whose warps find each other's dy in the L1 cache. In ResNets a thread of 5 filters of
/// 3 x 3 taps does 7 fmas for each number that comes from the L2 cache, one of 8 filters and two channels 13.
#pragma once

#include "kernels/cuda/conv2d_lane_sums.cuh"
#include "kernels/cuda/conv2d_plan.cuh"

#include <cmath>

namespace lockstep::LOCKSTEP_GPU {

/// How far loads run ahead: as far as registers allow, since kernels with few filters have few warps too.
template <int kFilters>
inline constexpr int kAhead = kFilters > 2 ? 1 : 3;

/// The columns of x above a thread's pixel, and kAhead more that are on their way. They rotate: column j
/// of a row is in slot j % kSlots.
template <int kSize, bool kPadded, int kFilters>
struct SlidingWindow {
  static constexpr int kSlots = kSize + kAhead<kFilters>;
  const Conv2dShape shape;
  const float* rows[kSize];  ///< the next column of each row
  unsigned outside = 0;      ///< bits of rows outside the image
  float at[kSize][kSlots];

  /// @param plane  x of this lane's sample and channel
  __device__ SlidingWindow(const Conv2dShape& of, const float* plane, int row) : shape(of) {
    const auto row_stride = static_cast<unsigned>(shape.in_width * shape.batch);
    if constexpr (!kPadded) plane += row * row_stride;
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
  ///
  /// @param first  first column of a round of walk_row(); this one is column i of it
  __device__ void load(int first, int i) {
    const int w = kPadded ? first + i - shape.padding : first + i, slot = i % kSlots;
    const bool is_there = !kPadded || (w >= 0 && w < shape.in_width);
    const int step = is_there ? shape.batch : 0;
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
      const bool inside = is_there && (!kPadded || (outside >> r & 1) == 0);
      at[r][slot] = inside ? load_input(rows[r]) : 0.0F;
      rows[r] += step;
    }
  }
  __device__ void end_round() {}
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
  const int batch;
  const float* at[kFilters];

  /// @param dy  this lane's first pixel of the row in the first filter
  __device__ FilterPixels(const WeightGradientArgs& args, int first_filter, const float* dy)
      : batch(args.shape.batch) {
    const auto filter_stride = static_cast<unsigned>(args.y.height * args.y.width * args.shape.batch);
#pragma unroll
    for (int f = 0; f < kFilters; ++f) at[f] = dy + min(f, args.y.filters - 1 - first_filter) * filter_stride;
  }
  /// In order. @param i  column of a round
  __device__ void load(int /*i*/, float (&to)[kFilters]) {
#pragma unroll
    for (int f = 0; f < kFilters; ++f) {
      to[f] = load_input(at[f]);
      at[f] += batch;
    }
  }
  __device__ void end_round(int /*pixels*/) {}
};

/// One row of pixels of one sample. (Steps of pointers are int, and conditions as they are, because nvcc 13
/// then makes one instruction of a step, and two otherwise: 84 % instead of 69 % of this loop are fmas.)
///
/// It goes in rounds of as many pixels as the window has slots, so that a slot is a constant.
template <class Window, class Pixels, int kSize, int kFilters>
__device__ inline void walk_row(Window window, Pixels pixels, int width, TapSums<kSize, kFilters>& sums) {
  constexpr int kSlots = Window::kSlots, kFirst = kSlots - kSize;
  float dy[kSlots][kFilters] = {};  // zeros: nvcc 13 then moves what is loaded about less
#pragma unroll
  for (int j = 0; j < kSize - 1; ++j) window.load(0, j);
#pragma unroll
  for (int i = 0; i < kFirst; ++i) {
    if (kFirst > 1 && i >= width) break;
    window.load(0, i + kSize - 1);
    pixels.load(i, dy[i]);
  }
#pragma unroll 1
  for (int first = 0; first < width; first += kSlots) {
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const bool is_last = first + i + 1 == width;
      if (kFirst == 1 ? !is_last : first + i + kFirst < width) {
        window.load(first, i + kFirst + kSize - 1);
        pixels.load(i + kFirst, dy[(i + kFirst) % kSlots]);
      }
      sums.add_pixel(window, i, dy[i]);
      if (is_last) return;
    }
    window.end_round();
    pixels.end_round(kSlots);
  }
}

/// The sum of dy over `count` pixels of a row, for the bias. Some of them are on their way together.
template <class Pixels, int kFilters>
__device__ inline void add_to_bias(Pixels pixels, int count, float (&sums)[kFilters]) {
  constexpr int kTogether = kFilters < 8 ? 8 / kFilters : 1;
#pragma unroll 1
  for (int first = 0; first < count; first += kTogether) {
    float dy[kTogether][kFilters] = {};
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i < count) pixels.load(i, dy[i]);
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
#pragma unroll
      for (int f = 0; f < kFilters; ++f)
        if (first + i < count) sums[f] += dy[i][f];
    pixels.end_round(kTogether);
  }
}

/// Grid: input channels / kChannels x filters / kFilters, terms, grains. Block: the units of a term of each channel.
template <int kSize, bool kPadded, int kFilters, int kChannels>
__global__ void __launch_bounds__(kMostWindowWarps<kChannels>* kSamplesPerWarp, kSize > 3 || kChannels > 1 ? 1
                                                                                : kFilters == 1            ? 3
                                                                                                : 2)
    square_weight_gradient(WeightGradientArgs args) {
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const TapPlace<kFilters, kChannels> place(args);
  const GradientUnit unit(args, place.warp);
  const auto batch = static_cast<std::size_t>(args.shape.batch);
  const float* plane =
      args.x + static_cast<std::size_t>(place.channel * args.shape.in_height) * args.shape.in_width * batch;
  const std::size_t first_pixel =
      static_cast<std::size_t>(place.first_filter * args.y.height + unit.first_row) * args.y.width;

  TapSums<kSize, kFilters> sums;
  float bias[kFilters] = {};
  const bool is_there = kChannels == 1 || place.channel < args.shape.in_channels;
  const int end_sample = is_there ? unit.end_sample : 0;
  for (int n = unit.first_sample + static_cast<int>(threadIdx.x) % kSamplesPerWarp; n < end_sample;
       n += kSamplesPerWarp) {
    const float* dy = args.dy + first_pixel * batch + n;
#pragma unroll 1
    for (int row = unit.first_row; row < unit.end_row; ++row) {
      if (place.channel == 0) {
        add_to_bias(FilterPixels<kFilters>(args, place.first_filter, dy), args.columns, bias);
      }
      walk_row(SlidingWindow<kSize, kPadded, kFilters>(args.shape, plane + n, row),
               FilterPixels<kFilters>(args, place.first_filter, dy), args.columns, sums);
      dy += args.y.width * batch;
    }
  }
  place.add_totals(args, sums, bias, shared);
}

template <int kFiltersOfTile, int kChannelsOfBlock>
struct WindowTile {
  static constexpr int kFilters = kFiltersOfTile, kChannels = kChannelsOfBlock;

  static int warps(const GradientSplit& split) { return kChannels * split.units_of_term; }
  /// Bytes of a block, for the totals of filters of so many taps.
  template <int kTaps>
  static std::size_t shared_bytes(const GradientSplit& split) {
    return kChannels * TapPlace<kFilters, kChannels>::template shared_floats<kTaps>(split.units_of_term) *
           sizeof(float);
  }
  static dim3 grid(const WeightGradientArgs& args) {
    return dim3(pieces(args.shape.in_channels, kChannels) * pieces(args.y.filters, kFilters),
                args.split.terms, pieces(args.shape.batch, args.grain));
  }
  /// Infinite where blocks would be too large for the kernel or the chip. With 12 warps they need more than a T4 has.
  template <int kSize>
  static double clocks(const Chip& chip, const WeightGradientArgs& args) {
    if (warps(args.split) > kMostWindowWarps<kChannels>) return HUGE_VAL;
    if (shared_bytes<kSize * kSize>(args.split) > chip.shared_bytes) return HUGE_VAL;
    const double pixels = 1.0 * args.split.sample_groups * args.split.rows * args.columns;
    const double starts = 1.0 * args.split.sample_groups * args.split.rows * kSize * (kSize - 1);
    const double taps = 1.0 * kSize * kSize * kFilters;
    const WarpWork work = {pixels * taps + kInstructionsOfSum * taps, pixels * (kSize + kFilters) + starts,
                           0};
    return guess_clocks(rounds_of(chip, grid(args)), warps(args.split), work);
  }
  /// Queues one launch, or several for more than 65,535 grains.
  static void queue(cudaStream_t stream, const WeightGradientArgs& args, std::size_t shared_bytes,
                    void (*kernel)(WeightGradientArgs)) {
    const dim3 all = grid(args);
    for_grains(args, [&](const WeightGradientArgs& part, unsigned grains) {
      launch(stream, {dim3(all.x, all.y, grains), dim3(warps(args.split) * kSamplesPerWarp), shared_bytes},
             kernel, part);
    });
  }

 private:
  static constexpr double kInstructionsOfSum = 4;  ///< per warp, over its lanes and the term's warps
};

template <int kSize>
void launch_window(cudaStream_t stream, const Chip& chip, const WeightGradientArgs& args) {
  const auto guess = [&](auto tile) { return tile.template clocks<kSize>(chip, args); };
  const auto run = [&](auto tile) {
    using Tile = decltype(tile);
    const auto kernel = args.shape.padding == 0
                            ? square_weight_gradient<kSize, false, Tile::kFilters, Tile::kChannels>
                            : square_weight_gradient<kSize, true, Tile::kFilters, Tile::kChannels>;
    Tile::queue(stream, args, Tile::template shared_bytes<kSize * kSize>(args.split), kernel);
  };
  // 5 filters of 25 taps leave registers for 6 warps on a multiprocessor, too few to hide loads. On an H100
  // LeNet's second convolution took 97 us with them, 69 us with 3 filters and 66 us with 2.
  if constexpr (kSize < 5)
    run_best<WindowTile<8, 2>, WindowTile<5, 1>, WindowTile<2, 1>, WindowTile<1, 1>>(guess, run);
  else
    run_best<WindowTile<2, 1>, WindowTile<1, 1>>(guess, run);
}

}  // namespace lockstep::LOCKSTEP_GPU
