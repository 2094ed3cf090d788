// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data gradient of a convolution with stride 1, square filters and outputs at most 12 wide.
///
/// A thread has a whole row of dx, kFilters channels of it, of one sample in registers. It scatters rows of
/// dy into it: it loads the pixels of each row once, and every pair of pixel and weight is one fma. Nothing
/// is computed for the zeros that a gather would find around the image, which are more than half of its
/// products for images as small as these.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep::LOCKSTEP_GPU {

struct ScatterArgs {
  explicit ScatterArgs(int all_channels) : groups(all_channels) {}

  int batch = 0, height = 0, width = 0;  ///< sizes of dy in memory
  int rows = 0, columns = 0;             ///< rows and columns of it that are read: beyond them, dy is 0
  int padding = 0;
  ChannelGroups groups;  ///< groups of dy's channels
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

/// The rows of dx with the most work first, from the middle outwards: the last blocks to start are short.
__device__ inline int row_of_block(int block, int rows) {
  const int middle = (rows - 1) / 2;
  return block % 2 != 0 ? middle + (block + 1) / 2 : middle - block / 2;
}

/// The rows of dy that reach a row of dx. One channel after another, by rising row: the taps fall.
struct RowWalk {
  const float* plane;  ///< this lane's first pixel of the first channel
  unsigned next, row_stride, channel_step;
  int rows, row = 0;  ///< rows of a channel; the number of the next one

  /// @param bottom  tap row r belongs to row bottom - r of dy
  __device__ RowWalk(const ScatterArgs& args, const float* first, int bottom, int begin, int end)
      : plane(first),
        next((bottom - end + 1) * args.width * args.batch),
        row_stride(args.width * args.batch),
        channel_step((args.height - (end - begin) + 1) * row_stride),
        rows(end - begin) {}

  /// @param is_full  the row has kColumns pixels, and not one less
  template <int kColumns>
  __device__ void load(unsigned batch, bool is_full, float (&pixels)[kColumns]) {
    const float* pixel = plane + next;
#pragma unroll
    for (int q = 0; q < kColumns; ++q) {
      pixels[q] = q + 1 < kColumns || is_full ? load_input(pixel) : 0.0F;
      pixel += batch;
    }
    const bool is_last = ++row == rows;
    next += is_last ? channel_step : row_stride;
    if (is_last) row = 0;
  }
};

/// A row of dx, [channel][column], from the first column that any pixel of dy reaches. It begins in the
/// padding.
template <int kSize, int kColumns, int kFilters>
struct RowSums {
  static constexpr int kWidth = kColumns + kSize - 1, kCount = kFilters * kWidth;
  using Cache = FilterCache<kSize * kSize, kSize, kFilters>;
  float at[kFilters][kWidth] = {};

  /// Adds to each sum in the order of the pixels, with few weights in use at a time.
  ///
  /// @param weights  a row of taps, [column][channel]
  /// @param is_full  the row has kColumns pixels, and not one less
  __device__ void add_row(const float (&pixels)[kColumns], bool is_full, const float* weights) {
    float weight[Cache::kLineFloats];
#pragma unroll
    for (int i = 0; i < Cache::kLineFloats; i += 4) load_four(weights + i, weight + i);
#pragma unroll
    for (int s = kSize - 1; s >= 0; --s) {
#pragma unroll
      for (int q = 0; q < kColumns; ++q) {
        if (q + 1 == kColumns && !is_full) break;
#pragma unroll
        for (int f = 0; f < kFilters; ++f)
          at[f][q + s] = fmaf(pixels[q], weight[s * kFilters + f], at[f][q + s]);
      }
    }
  }
  __device__ void put(const GroupSums& sums) const {
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sums.put(f * kWidth + j, at[f][j]);
  }
};

/// Rows that are on their way: the most that registers allow, since kernels with few filters have few warps
/// too.
template <int kFilters>
inline constexpr int kRowsAhead = kFilters > 2 ? 1 : 5;

/// The rows of some channels, at least one row: while one is added, the next ones are on their way.
template <int kSize, int kColumns, int kFilters>
struct RowQueue {
  using Sums = RowSums<kSize, kColumns, kFilters>;
  using Cache = typename Sums::Cache;
  static constexpr int kAhead = kRowsAhead<kFilters>, kSlots = kAhead + 1;
  static constexpr int kFloats = Sums::kCount + Cache::kLineFloats + kSlots * kColumns;  // In registers.
  /// Blocks on a multiprocessor at a time. nvcc 13 finds registers for so many, without spills in the loop over rows.
  /// LeNet's second convolution is all there at once then.
  static constexpr int kBlocks = kFloats > 96 || kColumns > (kFilters == 2 ? 8 : 10) ? 2
                                 : kFloats > 84 || kFilters == 2                     ? 3
                                                                                     : 4;
  RowWalk& walk;
  unsigned batch;
  bool is_full;
  int left, row = 0;
  float pixels[kSlots][kColumns];

  __device__ RowQueue(const ScatterArgs& args, RowWalk& from, int channels)
      : walk(from), batch(args.batch), is_full(args.columns == kColumns), left(channels * from.rows) {}

  __device__ void start() {
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (i < left) walk.load(batch, is_full, pixels[i]);
  }
  /// @returns true if there are more rows
  template <int kSlot>
  __device__ __forceinline__ bool add_next(Sums& sums, const float*& weights) {
    if (left > kAhead) walk.load(batch, is_full, pixels[(kSlot + kAhead) % kSlots]);
    sums.add_row(pixels[kSlot], is_full, weights);
    const bool is_last = ++row == walk.rows;
    weights += is_last ? Cache::kChannelFloats + (row - 1) * Cache::kLineFloats : -Cache::kLineFloats;
    if (is_last) row = 0;
    return --left > 0;
  }
  /// A slot is known when this is compiled: only then do all of them lie in registers.
  ///
  /// @param weights  those of the first row
  template <std::size_t... kSlot>
  __device__ __forceinline__ void add_all(Sums& sums, const float* weights, std::index_sequence<kSlot...>) {
    while ((add_next<kSlot>(sums, weights) && ...)) {
    }
  }
};

/// @param store  store.template row<kWidth, kFilters>(sums, place), called by all threads
/// Grid: channels of dx / kFilters, batch / 32, rows of dx. Block: a warp for each group of channels of dy.
template <int kSize, int kColumns, int kFilters, class Store>
__global__ void __launch_bounds__(ChannelGroups::kMost* kSamplesPerWarp,
                                  RowQueue<kSize, kColumns, kFilters>::kBlocks)
    scatter_rows(ScatterArgs args, Store store) {
  using Queue = RowQueue<kSize, kColumns, kFilters>;
  using Sums = typename Queue::Sums;
  using Cache = typename Queue::Cache;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int group = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
  const RowPlace place = {row_of_block(blockIdx.z, gridDim.z), static_cast<int>(blockIdx.x) * kFilters,
                          static_cast<int>(blockIdx.y * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp)};
  const std::size_t plane_stride = static_cast<std::size_t>(args.height) * args.width * args.batch;
  const int first = group * args.groups.per_group;
  const int bottom = place.row + args.padding;
  const int begin = max(bottom - args.rows + 1, 0), end = min(bottom + 1, kSize);
  const int channels = begin < end ? min(args.groups.per_group, args.groups.channels - first) : 0;
  RowWalk walk(args, args.dy + first * plane_stride + min(place.sample, args.batch - 1), bottom, begin, end);
  float* const cache = shared + group * args.channels_at_a_time * Cache::kChannelFloats;

  Sums sums;
  for (int from = 0; from < channels; from += args.channels_at_a_time) {
    const int count = min(args.channels_at_a_time, channels - from);
    Queue rows(args, walk, count);
    // With few sums, there are registers for rows that are on their way while the weights come.
    if constexpr (kFilters == 2) rows.start();
    __syncwarp();  // The warp has done with the weights before.
    Cache::fill(cache, args.filters, place.filter, first + from, count);
    __syncwarp();
    if constexpr (kFilters > 2) rows.start();
    rows.add_all(sums, cache + (end - 1) * Cache::kLineFloats, std::make_index_sequence<Queue::kSlots>());
  }
  __syncthreads();  // The caches are no longer needed.
  const GroupSums all = {shared, args.groups.count, Sums::kCount, group};
  sums.put(all);
  __syncthreads();
  store.template row<Sums::kWidth, kFilters>(all, place);
}

template <int kColumnsOfRow, int kFiltersOfRow>
struct ScatterTile {
  static constexpr int kColumns = kColumnsOfRow, kFilters = kFiltersOfRow;

  static dim3 grid(const OutputSize& dx, int batch) {
    return dim3(pieces(dx.filters, kFilters), pieces(batch, kSamplesPerWarp), dx.height);
  }
  /// @param rows  rows of dy: on average, rows / dx.height of the tap rows reach a row of dx
  static double clocks(const Chip& chip, const OutputSize& dx, int rows, int batch,
                       const ChannelGroups& groups, int size) {
    const dim3 blocks = grid(dx, batch);
    const double reached = 1.0 * rows / dx.height * blocks.x * blocks.y * blocks.z;
    const double weights = 1.0 * groups.per_group * size * size * kFilters;
    const WarpWork work = {kColumns * weights, 1.0 * groups.per_group * size * kColumns, weights};
    constexpr double kUneven = 0.5;  // The last blocks do not keep all multiprocessors busy.
    return guess_clocks(std::max(1.0, reached / chip.multiprocessors + kUneven), groups.count, work);
  }
};

template <int kSize, class Tile, class Store>
void launch_rows(cudaStream_t stream, const OutputSize& dx, ScatterArgs args, const Store& store) {
  using Sums = RowSums<kSize, Tile::kColumns, Tile::kFilters>;
  args.channels_at_a_time = Sums::Cache::channels_at_a_time(args.groups);
  const int cached = args.groups.count * args.channels_at_a_time * Sums::Cache::kChannelFloats;
  const int sums = threads_of(args.groups) * Sums::kCount;
  const LaunchShape shape = {Tile::grid(dx, args.batch), dim3(threads_of(args.groups)),
                             std::max(cached, sums) * sizeof(float)};
  launch(stream, shape, scatter_rows<kSize, Tile::kColumns, Tile::kFilters, Store>, args, store);
}

/// True if scatter_rows is there for so many columns of dy.
inline bool can_scatter(int columns) {
  return columns >= 3 && columns <= 12;
}

/// Queues one launch. `args` lacks what depends on the tile.
template <int kSize, class Store>
void launch_scatter(cudaStream_t stream, const Chip& chip, const OutputSize& dx, const ScatterArgs& args,
                    const Store& store) {
  const auto guess = [&](auto tile) {
    return tile.clocks(chip, dx, args.rows, args.batch, args.groups, kSize);
  };
  const auto run = [&](auto tile) { launch_rows<kSize, decltype(tile)>(stream, dx, args, store); };
  switch ((args.columns + 1) / 2) {
    case 2:
      return run_best<ScatterTile<4, 5>, ScatterTile<4, 4>, ScatterTile<4, 2>>(guess, run);
    case 3:
      return run_best<ScatterTile<6, 5>, ScatterTile<6, 4>, ScatterTile<6, 2>>(guess, run);
    case 4:
      return run_best<ScatterTile<8, 5>, ScatterTile<8, 4>, ScatterTile<8, 2>>(guess, run);
    case 5:
      return run_best<ScatterTile<10, 5>, ScatterTile<10, 4>, ScatterTile<10, 2>>(guess, run);
    default:
      return run_best<ScatterTile<12, 5>, ScatterTile<12, 4>, ScatterTile<12, 2>>(guess, run);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
