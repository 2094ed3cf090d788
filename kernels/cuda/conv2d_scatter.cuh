// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data gradient of a convolution with stride 1, square filters and outputs at most 12 wide.
///
/// A thread has a whole row of dx, kFilters channels of it, of one sample in registers, and scatters rows of
/// dy into it: of each row it loads the pixels once, and every pair of pixel and weight is one fma. Nothing
/// is computed for the zeros that a gather would find around the image, which are more than half of its
/// products for images as small as these.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"

namespace lockstep::LOCKSTEP_GPU {

struct ScatterArgs {
  explicit ScatterArgs(int all_channels) : groups(all_channels) {}

  int batch = 0, height = 0, width = 0;  ///< of dy
  int padding = 0;
  ChannelGroups groups;  ///< of dy's channels
  int channels_at_a_time = 1;
  const float* dy = nullptr;
  FilterView filters;
};

/// The row of dx that a block computes, and the sample of this lane, which may be beyond the batch.
struct RowPlace {
  int row;
  int filter;  ///< first channel of dx
  int sample;
};

/// A row of dx, [channel][column], from the first column that any pixel of dy reaches on; it begins in the
/// padding.
template <int kSize, int kColumns, int kFilters>
struct RowSums {
  static constexpr int kWidth = kColumns + kSize - 1, kCount = kFilters * kWidth;
  using Cache = FilterCache<kSize * kSize, kSize, kFilters>;
  float at[kFilters][kWidth] = {};

  /// What rows begin..end - 1 of the taps contribute, of one channel of dy.
  ///
  /// @param dy       this lane's first pixel of the channel
  /// @param bottom   tap row r belongs to row bottom - r of dy
  /// @param weights  of the channel
  __device__ void add_channel(const ScatterArgs& args, const float* dy, int bottom, int begin, int end,
                              const float* weights) {
    const std::size_t row_stride = static_cast<std::size_t>(args.width) * args.batch;
    const bool is_full = args.width == kColumns;
    if constexpr (kFilters > 2) {
#pragma unroll 1
      for (int r = begin; r < end; ++r) {
        float pixels[kColumns];
        load_row(dy + (bottom - r) * row_stride, static_cast<unsigned>(args.batch), is_full, pixels);
        add_row(pixels, is_full, weights + r * Cache::kLineFloats);
      }
    } else {  // Few registers in use, and few warps: wait once for all rows, those that are not there too.
      float pixels[kSize][kColumns];
#pragma unroll
      for (int r = 0; r < kSize; ++r) {
        const int row = min(max(bottom - r, 0), args.height - 1);
        load_row(dy + row * row_stride, static_cast<unsigned>(args.batch), is_full, pixels[r]);
      }
#pragma unroll
      for (int r = 0; r < kSize; ++r)
        if (r >= begin && r < end) add_row(pixels[r], is_full, weights + r * Cache::kLineFloats);
    }
  }
  static __device__ void load_row(const float* dy, unsigned batch, bool is_full, float (&pixels)[kColumns]) {
#pragma unroll
    for (int q = 0; q < kColumns; ++q) {
      pixels[q] = q + 1 < kColumns || is_full ? __ldg(dy) : 0.0F;
      dy += batch;
    }
  }
  /// @param weights  a row of taps, [column][channel]
  /// @param is_full  whether the row has kColumns pixels, and not one less
  __device__ void add_row(const float (&pixels)[kColumns], bool is_full, const float* weights) {
    float weight[Cache::kLineFloats];
#pragma unroll
    for (int i = 0; i < Cache::kLineFloats; i += 4) load_four(weights + i, weight + i);
#pragma unroll
    for (int q = 0; q < kColumns; ++q) {
      if (q + 1 == kColumns && !is_full) break;
#pragma unroll
      for (int s = 0; s < kSize; ++s)
#pragma unroll
        for (int f = 0; f < kFilters; ++f)
          at[f][q + s] = fmaf(pixels[q], weight[s * kFilters + f], at[f][q + s]);
    }
  }
  __device__ void put(const GroupSums& sums, int group) const {
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sums.put(group, f * kWidth + j, at[f][j]);
  }
};

/// @param store  store.template row<kWidth, kFilters>(sums, place), called by all threads
/// Grid: rows of dx, channels of dx / kFilters, batch / 32. Block: a warp for each group of channels of dy.
template <int kSize, int kColumns, int kFilters, class Store>
__global__ void __launch_bounds__(ChannelGroups::kMost* kSamplesPerWarp, kColumns > 10 ? 2 : 3)
    scatter_rows(ScatterArgs args, Store store) {
  using Sums = RowSums<kSize, kColumns, kFilters>;
  using Cache = typename Sums::Cache;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int group = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
  const RowPlace place = {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y) * kFilters,
                          static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp)};
  const std::size_t plane_stride = static_cast<std::size_t>(args.height) * args.width * args.batch;
  const int first = group * args.groups.per_group;
  const int channels = min(args.groups.per_group, args.groups.channels - first);
  const int bottom = place.row + args.padding;
  const int begin = max(bottom - args.height + 1, 0), end = min(bottom + 1, kSize);
  const float* plane = args.dy + first * plane_stride + min(place.sample, args.batch - 1);

  Sums sums;
  for (int from = 0; from < args.groups.per_group; from += args.channels_at_a_time) {
    if (from > 0) __syncthreads();
    Cache::fill(shared, args.filters, place.filter, args.groups.per_group, from, args.channels_at_a_time);
    __syncthreads();
    const float* weights = shared + group * args.channels_at_a_time * Cache::kChannelFloats;
    const int count = min(args.channels_at_a_time, channels - from);
    for (int c = 0; c < count; ++c) {
      sums.add_channel(args, plane, bottom, begin, end, weights);
      plane += plane_stride;
      weights += Cache::kChannelFloats;
    }
  }
  __syncthreads();  // The cache is no longer needed.
  const GroupSums all = {shared, args.groups.count, Sums::kCount};
  sums.put(all, group);
  __syncthreads();
  store.template row<Sums::kWidth, kFilters>(all, place);
}

template <int kColumnsOfRow, int kFiltersOfRow>
struct ScatterTile {
  static constexpr int kColumns = kColumnsOfRow, kFilters = kFiltersOfRow;

  static dim3 grid(const OutputSize& dx, int batch) {
    return dim3(dx.height, pieces(dx.filters, kFilters), pieces(batch, kSamplesPerWarp));
  }
  /// @param height  of dy: on average, height / dx.height of the tap rows reach a row of dx
  static double clocks(const Chip& chip, const OutputSize& dx, int height, int batch,
                       const ChannelGroups& groups, int size) {
    const dim3 blocks = grid(dx, batch);
    const double reached = 1.0 * height / dx.height * blocks.x * blocks.y * blocks.z;
    const double weights = 1.0 * groups.per_group * size * size * kFilters;
    const WarpWork work = {kColumns * weights, 1.0 * groups.per_group * size * kColumns, weights};
    return guess_clocks(std::max(1.0, reached / chip.multiprocessors), groups.count, work);
  }
};

template <int kSize, class Tile, class Store>
void launch_rows(cudaStream_t stream, const OutputSize& dx, ScatterArgs args, const Store& store) {
  using Sums = RowSums<kSize, Tile::kColumns, Tile::kFilters>;
  args.channels_at_a_time = channels_at_a_time(args.groups, Sums::Cache::kChannelFloats);
  const int cached = args.groups.count * args.channels_at_a_time * Sums::Cache::kChannelFloats;
  const int sums = args.groups.threads() * Sums::kCount;
  const LaunchShape shape = {Tile::grid(dx, args.batch), dim3(args.groups.threads()),
                             std::max(cached, sums) * sizeof(float)};
  launch(stream, shape, scatter_rows<kSize, Tile::kColumns, Tile::kFilters, Store>, args, store);
}

/// Whether scatter_rows is there for a dy of this width.
inline bool can_scatter(int width) {
  return width >= 3 && width <= 12;
}

/// Queues one launch. `args` lacks what depends on the tile.
template <int kSize, class Store>
void launch_scatter(cudaStream_t stream, const Chip& chip, const OutputSize& dx, const ScatterArgs& args,
                    const Store& store) {
  const auto guess = [&](auto tile) {
    return tile.clocks(chip, dx, args.height, args.batch, args.groups, kSize);
  };
  const auto run = [&](auto tile) { launch_rows<kSize, decltype(tile)>(stream, dx, args, store); };
  switch ((args.width + 1) / 2) {
    case 2:
      return run_best<ScatterTile<4, 5>, ScatterTile<4, 2>>(guess, run);
    case 3:
      return run_best<ScatterTile<6, 5>, ScatterTile<6, 2>>(guess, run);
    case 4:
      return run_best<ScatterTile<8, 5>, ScatterTile<8, 2>>(guess, run);
    case 5:
      return run_best<ScatterTile<10, 5>, ScatterTile<10, 2>>(guess, run);
    default:
      return run_best<ScatterTile<12, 5>, ScatterTile<12, 2>>(guess, run);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
