// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution with stride 1 and square filters, for the forward direction. With filters turned around, also
/// for the data gradient of images too wide for conv2d_scatter.cuh.
///
/// A thread computes 2 rows x kColumns columns of kFilters outputs of one sample. For each channel it loads
/// the patch of the input below that tile into registers; every weight comes from shared memory once, as a
/// part of a float4 that all lanes share, and serves the 2 * kColumns pixels.
#pragma once

#include "kernels/cuda/conv2d_patch.cuh"
#include "kernels/cuda/conv2d_plan.cuh"

#include <type_traits>

namespace lockstep::LOCKSTEP_GPU {

/// The sums of a thread: [filter][row][column].
template <int kColumns, int kFilters>
struct TileSums {
  static constexpr int kCount = kFilters * kTileRows * kColumns;
  float at[kFilters][kTileRows][kColumns] = {};

  /// Adds what one channel contributes, taps in order. The weights lie [tap][filter].
  template <int kSize>
  __device__ void add_channel(const Patch<kSize, kColumns>& x, const float* weights) {
    constexpr int kWeights = kSize * kSize * kFilters;
#pragma unroll
    for (int first = 0; first < kWeights; first += 4) {
      float weight[4];
      load_four(weights + first, weight);
#pragma unroll
      for (int i = first; i < first + 4 && i < kWeights; ++i) {
        const int tap = i / kFilters, r = tap / kSize, s = tap % kSize;
#pragma unroll
        for (int a = 0; a < kTileRows; ++a)
#pragma unroll
          for (int b = 0; b < kColumns; ++b) {
            float& sum = at[i % kFilters][a][b];
            sum = fmaf(x.at[a + r][b + s], weight[i - first], sum);
          }
      }
    }
  }
  __device__ void put(const GroupSums& sums) const {
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
#pragma unroll
      for (int a = 0; a < kTileRows; ++a)
#pragma unroll
        for (int b = 0; b < kColumns; ++b) sums.put((f * kTileRows + a) * kColumns + b, at[f][a][b]);
  }
};

/// On a multiprocessor at a time: as many as nvcc 13 finds registers for, without spills. With four of them, LeNet's
/// second convolution is there at once.
template <int kSize, bool kBorder, int kFilters>
inline constexpr int kDirectBlocks = kFilters > 5 ? 2
                                     : !kBorder   ? 4
                                     : kSize == 3 ? 3
                                                  : 2;

/// @param store  writes the outputs. store.early(place) begins what needs not wait for them;
///               store.template tile<kColumns, kFilters>(sums, place, early), called by all threads, shares
///               them among the warps; if store.from_registers, there is one warp, and
///               store.registers(sums, place, early) uses them as they are.
/// Grid: tiles, filters / kFilters, batch / 32. Block: a warp for each group of channels.
template <int kSize, bool kBorder, int kColumns, int kFilters, class Store>
__global__ void __launch_bounds__(ChannelGroups::kMost* kSamplesPerWarp,
                                  kDirectBlocks<kSize, kBorder, kFilters>)
    convolve_directly(DirectArgs args, OutputSize y, Store store) {
  using Cache = FilterCache<kSize * kSize, kSize * kSize, kFilters>;
  using Place = std::conditional_t<kBorder, BorderPlace<kSize, kColumns>, InnerPlace<kSize, kColumns>>;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int group = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
  const auto tile = TilePlace::of_block<kColumns, kFilters, kBorder>(args.tiles_wide, y);
  const std::size_t plane_stride = static_cast<std::size_t>(args.height) * args.width * args.batch;
  const int first = group * args.groups.per_group;
  const int channels = min(args.groups.per_group, args.groups.channels - first);
  const auto early = store.early(tile);
  Place place(args, tile, args.x + first * plane_stride);
  float* const weights = shared + group * args.channels_at_a_time * Cache::kChannelFloats;  // this warp's

  TileSums<kColumns, kFilters> sums;
  const float* of_channel = weights;
  // In narrow tiles, pixels may be on their way while the weights come; wide ones lack registers, not warps.
  constexpr bool kLoadsFirst = kColumns == 2;
#pragma unroll 1
  for (int c = 0, cached = 0; c < channels; ++c, --cached) {
    Patch<kSize, kColumns> patch;
    if constexpr (kLoadsFirst) place.load(patch);
    if (cached == 0) {
      cached = min(args.channels_at_a_time, channels - c);
      of_channel = weights;
      __syncwarp();  // The warp has done with the weights before.
      Cache::fill(weights, args.filters, tile.filter, first + c, cached);
      __syncwarp();
    }
    if constexpr (!kLoadsFirst) place.load(patch);
    sums.add_channel(patch, of_channel);
    place.corner += plane_stride;
    of_channel += Cache::kChannelFloats;
  }
  if constexpr (Store::kCanTakeRegisters) {
    if (store.from_registers) return store.registers(sums, tile, early);
  }
  __syncthreads();  // The caches are no longer needed.
  const GroupSums all = {shared, args.groups.count, sums.kCount, group};
  sums.put(all);
  __syncthreads();
  store.template tile<kColumns, kFilters>(all, tile, early);
}

template <int kColumnsOfTile, int kFiltersOfTile>
struct DirectTile {
  static constexpr int kColumns = kColumnsOfTile, kFilters = kFiltersOfTile;

  static dim3 grid(const OutputSize& y, int batch) {
    return dim3(pieces(y.height, kTileRows) * pieces(y.width, kColumns), pieces(y.filters, kFilters),
                pieces(batch, kSamplesPerWarp));
  }
  static double clocks(const Chip& chip, const OutputSize& y, int batch, const ChannelGroups& groups,
                       int size) {
    const double weights = 1.0 * groups.per_group * size * size * kFilters;
    const WarpWork work = {kTileRows * kColumns * weights,
                           1.0 * groups.per_group * (kTileRows + size - 1) * (kColumns + size - 1), weights};
    return guess_clocks(rounds_of(chip, grid(y, batch)), groups.count, work);
  }
};

template <int kSize, bool kBorder, class Tile, class Store>
void launch_tile(cudaStream_t stream, const OutputSize& y, DirectArgs args, const Store& store) {
  using Cache = FilterCache<kSize * kSize, kSize * kSize, Tile::kFilters>;
  args.tiles_wide = pieces(y.width, Tile::kColumns);
  args.channels_at_a_time = Cache::channels_at_a_time(args.groups);
  const int cached = args.groups.count * args.channels_at_a_time * Cache::kChannelFloats;
  const int sums = threads_of(args.groups) * TileSums<Tile::kColumns, Tile::kFilters>::kCount;
  const LaunchShape shape = {Tile::grid(y, args.batch), dim3(threads_of(args.groups)),
                             std::max(cached, sums) * sizeof(float)};
  launch(stream, shape, convolve_directly<kSize, kBorder, Tile::kColumns, Tile::kFilters, Store>, args, y,
         store);
}

/// Queues one launch, for a `y` that has pixels. `args` lacks what depends on the tile.
///
/// @tparam kAlwaysBorder  the caller's images nearly always have a border. Kernels for those without are left
///                        out, which compile for long, and tiles with a border compute the same bits
template <int kSize, bool kAlwaysBorder, class Store>
void launch_direct(cudaStream_t stream, const Chip& chip, const OutputSize& y, const DirectArgs& args,
                   const Store& store) {
  const auto guess = [&](auto tile) { return tile.clocks(chip, y, args.batch, args.groups, kSize); };
  constexpr int kMostColumns = 4;
  if constexpr (!kAlwaysBorder) {
    if (args.padding == 0 && y.height >= kTileRows && y.width >= kMostColumns) {
      return run_best<DirectTile<kMostColumns, 10>, DirectTile<kMostColumns, 5>, DirectTile<2, 5>,
                      DirectTile<2, 2>>(
          guess, [&](auto tile) { launch_tile<kSize, false, decltype(tile)>(stream, y, args, store); });
    }
  }
  const auto run = [&](auto tile) { launch_tile<kSize, true, decltype(tile)>(stream, y, args, store); };
  if constexpr (kSize == 3)  // 8 filters: ResNets have multiples of 16.
    run_best<DirectTile<kMostColumns, 8>, DirectTile<kMostColumns, 5>, DirectTile<2, 2>>(guess, run);
  else
    run_best<DirectTile<kMostColumns, 5>, DirectTile<2, 2>>(guess, run);
}

}  // namespace lockstep::LOCKSTEP_GPU
