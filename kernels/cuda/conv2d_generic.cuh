// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions with filters of any size, stride, padding, dilation and number of groups. Forward, and the gradient of
/// the data. (kernels/cuda/conv2d_generic_weights.cuh has that of the weights.)
///
/// Such a convolution has filters of 1 x 1 over all pairs of an input channel and a tap. So its tiles are those
/// of conv2d_direct.cuh. A table in shared memory tells of each pair its weights, where its pixels lie, and
/// which of them are inside the image. Every `stride`-th pixel of dx gets its gradient through the same taps,
/// from pixels of dy that are neighbours: a tile of the data gradient consists of such.
///
/// Versions:
/// 1. A thread has an output, or the four of a pool window, of 4 filters, and loads weights from global memory: 16 of
/// 150 instructions of the loop were fmas, in the data gradient 8 of 96.
/// 2. Now a thread has 2 x 4 pixels of 8 filters, a warp a chain of channels, a block up to 8 warps; those of
/// other filters find each other's pixels in the L1 cache.
#pragma once

#include "kernels/cuda/conv2d_direct.cuh"
#include "kernels/cuda/conv2d_patch.cuh"
#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace lockstep::LOCKSTEP_GPU {

/// In pixels, of rows and of columns alike. The input is what is read, x or dy; the output what is computed, y or dx.
struct TapSteps {
  int output;  ///< pixels of the output from one pixel of a tile to the next
  int pixel;   ///< pixels of the input from one pixel of a tile to the next
  int tap;     ///< pixels of the input from one tap to the next that a pixel has
  int number;  ///< from that tap's number to the next one's; the data gradient's fall

  static TapSteps forward(const Conv2dShape& s) { return {1, s.stride, s.dilation, 1}; }
  static TapSteps backward(const Conv2dShape& s) {
    const int common = std::gcd(s.stride, s.dilation);
    return {s.stride, 1, s.dilation / common, -s.stride / common};
  }
};

struct GenericArgs {
  Conv2dShape shape;  ///< shape of a group, as it is forward
  TapSteps steps;
  ChannelGroups chains;    ///< chains of the input's channels in a group
  int outputs;             ///< channels of a group that are computed
  OutputSize y;            ///< sizes of the output, all groups
  int height, width;       ///< sizes of the input
  int tiles_of_block = 1;  ///< those of other filters
  const float* x;          ///< the input
  FilterView filters;      ///< those of the first group: its filters are the channels that are computed
};

/// The taps of a row or column of the output.
struct TapLine {
  int first;   ///< pixel of the input under the first tap; it may lie outside
  int number;  ///< number of that tap
  int count;

  __device__ TapLine(int pixel, const GenericArgs& args, int taps) {
    const Conv2dShape& s = args.shape;
    if (args.steps.number > 0) {
      first = pixel * s.stride - s.padding, number = 0, count = taps;
      return;
    }
    const int behind = pixel + s.padding;  // pixels from the first one under output 0
    number = taps - 1;
    for (int tries = -args.steps.number; tries > 1 && (behind - number * s.dilation) % s.stride != 0; --tries)
      --number;
    const int pixels = behind - number * s.dilation;
    first = pixels / s.stride;
    count = number >= 0 && pixels % s.stride == 0 ? number / -args.steps.number + 1 : 0;
  }
};

/// A pair of a channel and a tap.
template <int kFilters>
struct alignas(16) TapEntry {
  float weights[kFilters];
  int place;        ///< the tile's first pixel, from the first one of the chain's first channel on
  unsigned inside;  ///< bit row * kColumns + column of a tile: whether that pixel is
};

/// A warp has a chain of a tile, a block the same tile of some filters, 8 each.
struct GenericTile {
  static constexpr int kColumns = 4, kFilters = 8;
  static constexpr int kEntries = 128;  ///< entries of a warp at a time
  static constexpr int kMostWarps = 8;
  using Entry = TapEntry<kFilters>;
  using Sums = TileSums<kColumns, kFilters>;
  using Pixels = Patch<1, kColumns>;
  static constexpr int kWarpFloats =
      Sums::kCount * kSamplesPerWarp;  ///< in shared memory: entries, then sums
  static_assert(kEntries * sizeof(Entry) <= kWarpFloats * sizeof(float));

  /// The number of `tiles` with different filters in a block: as many as it has warps for, if shared evenly.
  static int tiles_of_block(const ChannelGroups& chains, int tiles) {
    int count = std::max(kMostWarps / chains.count, 1);
    while (tiles % count != 0) --count;
    return count;
  }

  /// Tiles of every steps.output-th pixel, one set of them after the other.
  __host__ __device__ static int tiles(int pixels, int most, const TapSteps& steps) {
    return pieces(pieces(pixels, steps.output), most);
  }
  static __device__ TilePlace place(const GenericArgs& args, const GroupBlock& block) {
    const int apart = args.steps.output, wide = tiles(args.y.width, kColumns, args.steps),
              of_set = tiles(args.y.height, kTileRows, args.steps) * wide;
    const int set = static_cast<int>(blockIdx.x) / of_set, tile = static_cast<int>(blockIdx.x) - set * of_set;
    const int down = tile / wide, right = tile - down * wide;
    const int row = set / apart + down * kTileRows * apart, column = set % apart + right * kColumns * apart;
    return {.row = row,
            .column = column,
            .first_row = row,
            .first_column = column,
            .filter = block.first,
            .end_filter = block.first + block.count,
            .sample = static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp),
            .apart = apart};
  }
};

/// A warp's tile and chain.
struct TapTable {
  const GenericArgs& args;
  const GroupBlock& block;
  TapLine rows, columns;
  int first_channel;  ///< channel of the input, within the group

  __device__ int taps() const { return rows.count * columns.count; }

  /// The warp writes entries [first, first + count) of the chain. Channel by channel, then in the order of the taps.
  __device__ void fill(GenericTile::Entry* entries, int first, int count) const {
    for (int i = static_cast<int>(threadIdx.x) % kSamplesPerWarp; i < count; i += kSamplesPerWarp) {
      const int channel = (first + i) / taps(), tap = first + i - channel * taps();
      const int r = tap / columns.count, s = tap - r * columns.count;
      const int row = rows.first + r * args.steps.tap, column = columns.first + s * args.steps.tap;
      GenericTile::Entry entry;
      entry.place = ((channel * args.height + row) * args.width + column) * args.shape.batch;
      entry.inside = inside(row, column);
      const float* weights = args.filters.weights + weight_place(channel, r, s);
#pragma unroll
      for (int f = 0; f < GenericTile::kFilters; ++f)
        entry.weights[f] = f < block.count ? load_input(weights + f * args.filters.filter_stride) : 0.0F;
      entries[i] = entry;
    }
  }

 private:
  __device__ unsigned inside(int row, int column) const {
    unsigned bits = 0;
#pragma unroll
    for (int a = 0; a < kTileRows; ++a)
#pragma unroll
      for (int b = 0; b < GenericTile::kColumns; ++b) {
        const int h = row + a * args.steps.pixel, w = column + b * args.steps.pixel;
        const bool is_inside = h >= 0 && h < args.height && w >= 0 && w < args.width;
        bits |= is_inside ? 1U << (a * GenericTile::kColumns + b) : 0U;
      }
    return bits;
  }
  __device__ int weight_place(int channel, int r, int s) const {
    const Conv2dShape& shape = args.shape;
    const int steps = args.steps.number, taps = shape.kernel_height * shape.kernel_width;
    const int tap = (rows.number + r * steps) * shape.kernel_width + columns.number + s * steps;
    const int of_groups_before = block.group * shape.out_channels * shape.in_channels * taps;
    return of_groups_before +
           args.filters.place(block.first - block.group * args.outputs, first_channel + channel, tap, taps);
  }
};

/// The pixels of a tile under one tap; 0 outside the image.
///
/// @param first  this lane's first pixel, which may lie outside
__device__ inline void load_inside(const float* first, unsigned inside, unsigned pixel_stride,
                                   unsigned row_stride, GenericTile::Pixels& pixels) {
#pragma unroll
  for (int a = 0; a < kTileRows; ++a) {
    const float* pixel = first;
#pragma unroll
    for (int b = 0; b < GenericTile::kColumns; ++b) {
      const bool is_inside = (inside >> (a * GenericTile::kColumns + b) & 1) != 0;
      pixels.at[a][b] = is_inside ? load_input(pixel) : 0.0F;
      pixel += pixel_stride;
    }
    first += row_stride;
  }
}

/// @param store  that of convolve_directly; registers are not asked for
/// Grid: tiles, groups x outputs of a group / kFilters / tiles of a block, batch / 32. Block: a warp for each chain of
/// channels of each of its tiles.
template <class Store>
__global__ void __launch_bounds__(GenericTile::kMostWarps* kSamplesPerWarp, 2)
    convolve_generic(GenericArgs args, Store store) {
  using Tile = GenericTile;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int warp = static_cast<int>(threadIdx.x) / kSamplesPerWarp, of_block = warp / args.chains.count;
  const int chain = warp - of_block * args.chains.count;
  const GroupBlock block(static_cast<int>(blockIdx.y) * args.tiles_of_block + of_block, args.outputs,
                         Tile::kFilters);
  const TilePlace tile = Tile::place(args, block);
  const auto early = store.early(tile);
  const int first_channel = chain * args.chains.per_group;
  const TapTable table = {args, block, TapLine(tile.row, args, args.shape.kernel_height),
                          TapLine(tile.column, args, args.shape.kernel_width), first_channel};
  const std::size_t plane = static_cast<std::size_t>(args.height) * args.width * args.shape.batch;
  const float* x = args.x + (block.group * args.chains.channels + first_channel) * plane + tile.sample;
  const unsigned pixel_stride = args.steps.pixel * args.shape.batch, row_stride = pixel_stride * args.width;
  auto* const entries = reinterpret_cast<Tile::Entry*>(shared + warp * Tile::kWarpFloats);

  Tile::Sums sums;
  const int all = min(args.chains.per_group, args.chains.channels - first_channel) * table.taps();
#pragma unroll 1
  for (int first = 0; first < all; first += Tile::kEntries) {
    const int count = min(Tile::kEntries, all - first);
    __syncwarp();  // The warp has done with the entries before.
    table.fill(entries, first, count);
    __syncwarp();
    const int mine = tile.sample < args.shape.batch ? count : 0;
#pragma unroll 1
    for (int i = 0; i < mine; ++i) {
      Tile::Pixels pixels;
      load_inside(x + entries[i].place, entries[i].inside, pixel_stride, row_stride, pixels);
      sums.add_channel(pixels, entries[i].weights);
    }
  }
  __syncthreads();  // The tables are no longer needed.
  const GroupSums chains = {shared + (warp - chain) * Tile::kWarpFloats, args.chains.count,
                            Tile::Sums::kCount, chain};
  sums.put(chains);
  __syncthreads();
  store.template tile<Tile::kColumns, Tile::kFilters>(chains, tile, early);
}

/// Queues one launch, for an `args.y` that has pixels. `args` lacks the tiles of a block.
template <class Store>
void launch_generic(cudaStream_t stream, GenericArgs args, const Store& store) {
  using Tile = GenericTile;
  const OutputSize& y = args.y;
  const int tiles = args.steps.output * args.steps.output * Tile::tiles(y.height, kTileRows, args.steps) *
                    Tile::tiles(y.width, Tile::kColumns, args.steps);
  const int filter_tiles = y.filters / args.outputs * pieces(args.outputs, Tile::kFilters);
  args.tiles_of_block = Tile::tiles_of_block(args.chains, filter_tiles);
  const int warps = args.tiles_of_block * args.chains.count;
  const LaunchShape shape = {
      dim3(tiles, filter_tiles / args.tiles_of_block, pieces(args.shape.batch, kSamplesPerWarp)),
      dim3(warps * kSamplesPerWarp), warps * Tile::kWarpFloats * sizeof(float)};
  launch(stream, shape, convolve_generic<Store>, args, store);
}

}  // namespace lockstep::LOCKSTEP_GPU
