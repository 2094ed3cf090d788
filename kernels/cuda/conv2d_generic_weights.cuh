// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradient of a convolution with filters of any size, stride, padding, dilation and number of groups.
///
/// A thread has 8 taps, counted through all channels of a group, of 8 of its filters. It walks along rows of dy of one
/// sample. A block has as many such tiles as a term leaves warps for, of neighbouring taps and filters: they find each
/// other's x and dy in the L1 cache, which makes 11 or 16 fmas for each number from beyond (1 x 1 or 3 x 3 taps).
///
/// Versions:
/// 1. 4 taps of 4 filters: 8 loads for 16 fmas, whose places were computed for every pixel.
/// 2. Now 16 loads for 64, whose places are those of a row and a step.
#pragma once

#include "kernels/cuda/conv2d_lane_sums.cuh"
#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/conv2d_window.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

/// Place of x under a tap for pixel (0, 0) of dy.
struct TapOrigin {
  int channel;      ///< channel of x
  int row, column;  ///< may be outside
};

/// How many tiles a block has: neighbours along the taps of a filter, and along filters.
struct TapTiles {
  int along_taps, along_filters;
  int tap_blocks;  ///< that share the taps of a filter
};

/// The taps and filters of a warp. The warps of a block: [filters][taps][unit of a term].
struct GenericTaps {
  static constexpr int kTaps = 8, kFilters = 8;
  static constexpr int kMostWarps = GradientSplit::kMostUnitsOfTerm;
  using Totals = TermSums<kFilters * kTaps>;
  using Biases = TermSums<kFilters>;

  GroupBlock filters;
  int tile, warp;  ///< number in the block; in the term
  int first_tap, end_tap;

  __device__ GenericTaps(const WeightGradientArgs& args, const TapTiles& tiles, int tile_of_block)
      : filters(static_cast<int>(blockIdx.x) / tiles.tap_blocks * tiles.along_filters +
                    tile_of_block / tiles.along_taps,
                args.shape.out_channels, kFilters),
        tile(tile_of_block),
        warp(static_cast<int>(threadIdx.x) / kSamplesPerWarp - tile * args.split.units_of_term),
        first_tap((static_cast<int>(blockIdx.x) % tiles.tap_blocks * tiles.along_taps +
                   tile_of_block % tiles.along_taps) *
                  kTaps),
        end_tap(args.shape.in_channels * args.shape.kernel_height * args.shape.kernel_width) {}

  /// @param taps          taps of a filter
  /// @param filter_tiles  tiles of the filters of all groups
  static TapTiles tiles(const GradientSplit& split, int taps, int filter_tiles) {
    const int most = kMostWarps / split.units_of_term, tap_tiles = pieces(taps, kTaps);
    const int along_filters = most >= 4 && filter_tiles % 2 == 0 ? 2 : 1;
    const int along_taps = std::min(most / along_filters, tap_tiles);
    return {along_taps, along_filters, pieces(tap_tiles, along_taps)};
  }
  /// Floats of the warps of a term.
  __host__ __device__ static constexpr int shared_floats(int units) {
    return Totals::floats(units) + Biases::floats(units);
  }

  /// Taps beyond the last one repeat it.
  __device__ TapOrigin origin(const Conv2dShape& shape, int i) const {
    const int taps = shape.kernel_height * shape.kernel_width;
    const int tap = min(first_tap + i, end_tap - 1), channel = tap / taps, of_filter = tap - channel * taps;
    const int r = of_filter / shape.kernel_width, s = of_filter - r * shape.kernel_width;
    return {filters.group * shape.in_channels + channel, r * shape.dilation - shape.padding,
            s * shape.dilation - shape.padding};
  }
};

/// The sums of a thread, [filter][tap].
struct GenericSums {
  static constexpr int kTaps = GenericTaps::kTaps, kFilters = GenericTaps::kFilters;
  float at[kFilters * kTaps] = {};

  /// A tensor has fewer than 2^31 numbers: places are 32 bits, which leaves registers for the sums.
  ///
  /// @param x, dy  of this lane's sample
  __device__ void add_row(const WeightGradientArgs& args, const TapOrigin* origins, const GroupBlock& filters,
                          int row, const float* x, const float* dy) {
    const Conv2dShape& shape = args.shape;
    constexpr int kOutside = -(1 << 30);  // No step of a row brings that inside.
    int under[kTaps], columns[kTaps];     // in x
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const volatile TapOrigin& origin = origins[i];  // Or a compiler keeps them from row to row, and spills.
      const int h = origin.row + row * shape.stride, column = origin.column;
      columns[i] = h >= 0 && h < shape.in_height ? column : kOutside;
      under[i] = place(origin.channel, shape.in_height, h, shape.in_width, column, shape.batch);
    }
    int of_filter[kFilters];  // in dy; filters beyond the last one repeat it
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
      of_filter[f] =
          place(filters.first + min(f, filters.count - 1), args.y.height, row, args.y.width, 0, shape.batch);
#pragma unroll 1
    for (int w = 0; w < args.columns * shape.stride; w += shape.stride) {
      float gradients[kFilters], of_tap[kTaps];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) gradients[f] = load_input(dy + of_filter[f]);
#pragma unroll
      for (int i = 0; i < kTaps; ++i) {
        const bool is_inside = static_cast<unsigned>(columns[i] + w) < static_cast<unsigned>(shape.in_width);
        of_tap[i] = is_inside ? load_input(x + under[i]) : 0.0F;
      }
      dy += shape.batch;
      x += shape.stride * shape.batch;
#pragma unroll
      for (int f = 0; f < kFilters; ++f)
#pragma unroll
        for (int i = 0; i < kTaps; ++i) at[f * kTaps + i] = fmaf(of_tap[i], gradients[f], at[f * kTaps + i]);
    }
  }

 private:
  /// Outside, where nothing is loaded, it may be any number.
  static __device__ int place(int channel, int height, int row, int width, int column, int batch) {
    return static_cast<int>(static_cast<unsigned>((channel * height + row) * width + column) *
                            static_cast<unsigned>(batch));
  }
};

/// Grid: tap blocks x groups x filters of a group / kFilters / tiles along them, terms, grains. Block: the units of a
/// term of each of its tiles.
__global__ void __launch_bounds__(GenericTaps::kMostWarps* kSamplesPerWarp, 2)
    generic_weight_gradient(WeightGradientArgs args, TapTiles tiles) {
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int units = args.split.units_of_term, threads = units * kSamplesPerWarp;  // those of a tile
  const int tile = static_cast<int>(threadIdx.x) / threads;
  const int thread = static_cast<int>(threadIdx.x) - tile * threads;
  const GenericTaps taps(args, tiles, tile);
  float* const of_tile = shared + tile * GenericTaps::shared_floats(units);
  auto* const origins = reinterpret_cast<TapOrigin*>(of_tile);
  if (thread < GenericTaps::kTaps) origins[thread] = taps.origin(args.shape, thread);
  __syncthreads();

  const GradientUnit unit(args, taps.warp);
  const auto for_rows = [&](auto&& run) {  // run(sample, row)
    for (int n = unit.first_sample + static_cast<int>(threadIdx.x) % kSamplesPerWarp; n < unit.end_sample;
         n += kSamplesPerWarp) {
#pragma unroll 1
      for (int row = unit.first_row; row < unit.end_row; ++row) run(n, row);
    }
  };
  const GenericTaps::Biases biases = {of_tile + GenericTaps::Totals::floats(units), units, taps.warp};
  if (static_cast<int>(blockIdx.x) % tiles.tap_blocks == 0) {  // Before the taps, which need its registers.
    float bias[GenericTaps::kFilters] = {};
    if (taps.first_tap == 0) {
      for_rows([&](int n, int row) {
        const int pixel = (taps.filters.first * args.y.height + row) * args.y.width;
        const float* dy = args.dy + static_cast<std::size_t>(pixel) * args.shape.batch + n;
        add_to_bias(FilterPixels<GenericTaps::kFilters>(args, taps.filters.first, dy), args.columns, bias);
      });
    }
    biases.add(bias);
  }
  GenericSums sums;
  for_rows([&](int n, int row) { sums.add_row(args, origins, taps.filters, row, args.x + n, args.dy + n); });
  __syncthreads();  // The origins are no longer needed.
  const GenericTaps::Totals totals = {of_tile, units, taps.warp};
  totals.add(sums.at);
  __syncthreads();
  for (int i = thread; i < taps.filters.count * GenericTaps::kTaps; i += threads) {
    const int f = i / GenericTaps::kTaps, tap = taps.first_tap + i % GenericTaps::kTaps;
    const std::size_t filter = taps.filters.first + f;
    if (tap < taps.end_tap) add_exact(args.gradient.weight, filter * taps.end_tap + tap, totals.totals()[i]);
  }
  if (taps.first_tap == 0 && thread < taps.filters.count)
    add_exact(args.gradient.bias, taps.filters.first + thread, biases.totals()[thread]);
}

/// Queues one launch, or several for more than 65,535 grains.
inline void launch_generic_weights(cudaStream_t stream, const WeightGradientArgs& args) {
  const Conv2dShape& s = args.shape;
  const int taps = s.in_channels * s.kernel_height * s.kernel_width;
  const int filter_tiles = args.y.filters / s.out_channels * pieces(s.out_channels, GenericTaps::kFilters);
  const TapTiles tiles = GenericTaps::tiles(args.split, taps, filter_tiles);
  const int of_block = tiles.along_taps * tiles.along_filters;
  const std::size_t shared_bytes =
      of_block * GenericTaps::shared_floats(args.split.units_of_term) * sizeof(float);
  for_grains(args, [&](const WeightGradientArgs& part, unsigned grains) {
    const dim3 grid(tiles.tap_blocks * filter_tiles / tiles.along_filters, args.split.terms, grains);
    launch(stream, {grid, dim3(of_block * threads_of(args.split)), shared_bytes}, generic_weight_gradient,
           part, tiles);
  });
}

}  // namespace lockstep::LOCKSTEP_GPU
