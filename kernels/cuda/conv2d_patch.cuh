// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The patch of the input below the tile of a thread, inside of an image and at its border.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"

#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kTileRows = 2;

struct DirectArgs {
  explicit DirectArgs(int all_channels) : groups(all_channels) {}

  int batch = 0, height = 0, width = 0;  ///< sizes of the input
  int padding = 0;                       ///< may be negative
  int tiles_wide = 1;
  ChannelGroups groups;  ///< groups of the input's channels
  int channels_at_a_time = 1;
  const float* x = nullptr;  ///< [channels, height, width, batch]
  FilterView filters;
};

/// The tile of outputs a block computes, and the sample of this lane, which may be beyond the batch.
struct TilePlace {
  int row, column;              ///< the tile's first pixel
  int first_row, first_column;  ///< pixels before these are another tile's
  int filter, end_filter;       ///< filters of the tile; others are another tile's, or none
  int sample;
  int apart = 1;  ///< pixels of the output, from one of the tile to the next

  /// Tiles of images that have no border are moved to lie inside.
  template <int kColumns, int kFilters, bool kBorder>
  static __device__ TilePlace of_block(int tiles_wide, const OutputSize& y) {
    const int tile = static_cast<int>(blockIdx.x), down = tile / tiles_wide;
    const int row = down * kTileRows, column = (tile - down * tiles_wide) * kColumns;
    return {kBorder ? row : min(row, y.height - kTileRows),
            kBorder ? column : min(column, y.width - kColumns),
            row,
            column,
            static_cast<int>(blockIdx.y) * kFilters,
            y.filters,
            static_cast<int>(blockIdx.z * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp)};
  }
};

/// The patch of one channel below a tile.
template <int kSize, int kColumns>
struct Patch {
  static constexpr int kHeight = kTileRows + kSize - 1, kWidth = kColumns + kSize - 1;
  float at[kHeight][kWidth];
};

/// Places of the patches of a tile inside the image. A pointer walks from pixel to pixel: that
/// costs one instruction each, and compilers have no reason to keep an address for each.
template <int kSize, int kColumns>
struct InnerPlace {
  using Pixels = Patch<kSize, kColumns>;
  const float* corner;  ///< this lane's; moves from channel to channel
  unsigned pixel_stride, row_stride;

  __device__ InnerPlace(const DirectArgs& args, const TilePlace& tile, const float* plane)
      : corner(plane + static_cast<std::size_t>(tile.row * args.width + tile.column) * args.batch +
               min(tile.sample, args.batch - 1)),
        pixel_stride(args.batch),
        row_stride(args.width * args.batch) {}

  __device__ void load(Pixels& patch) const {
    const float* row = corner;
#pragma unroll
    for (int i = 0; i < Pixels::kHeight; ++i) {
      const float* pixel = row;
#pragma unroll
      for (int j = 0; j < Pixels::kWidth; ++j) {
        patch.at[i][j] = load_input(pixel);
        pixel += pixel_stride;
      }
      row += row_stride;
    }
  }
};

/// Places of the patches of a tile that may reach beyond the image: pixels there are 0. It loads the nearest pixel
/// inside for them.
template <int kSize, int kColumns>
struct BorderPlace {
  using Pixels = Patch<kSize, kColumns>;
  const float* corner;                 ///< the first pixel of the patch
  unsigned down[Pixels::kHeight - 1];  ///< steps from row to row
  unsigned right[Pixels::kWidth - 1];  ///< and from pixel to pixel
  unsigned rows = 0, columns = 0;      ///< bits of those outside

  __device__ BorderPlace(const DirectArgs& args, const TilePlace& tile, const float* plane) {
    const int top = tile.row - args.padding, left = tile.column - args.padding;
    const int row_stride = args.width * args.batch;
    corner = plane + static_cast<std::size_t>(nearest(top, args.height)) * row_stride +
             static_cast<std::size_t>(nearest(left, args.width)) * args.batch +
             min(tile.sample, args.batch - 1);
#pragma unroll
    for (int i = 0; i < Pixels::kHeight; ++i) {
      const int h = top + i;
      if (h < 0 || h >= args.height) rows |= 1U << i;
      if (i > 0) down[i - 1] = (nearest(h, args.height) - nearest(h - 1, args.height)) * row_stride;
    }
#pragma unroll
    for (int j = 0; j < Pixels::kWidth; ++j) {
      const int w = left + j;
      if (w < 0 || w >= args.width) columns |= 1U << j;
      if (j > 0) right[j - 1] = (nearest(w, args.width) - nearest(w - 1, args.width)) * args.batch;
    }
  }
  static __device__ int nearest(int place, int size) {
    return min(max(place, 0), size - 1);
  }

  __device__ void load(Pixels& patch) const {
    const float* row = corner;
#pragma unroll
    for (int i = 0; i < Pixels::kHeight; ++i) {
      const float* pixel = row;
#pragma unroll
      for (int j = 0; j < Pixels::kWidth; ++j) {
        patch.at[i][j] = load_input(pixel);
        if (j + 1 < Pixels::kWidth) pixel += right[j];
      }
      if (i + 1 < Pixels::kHeight) row += down[i];
    }
    if (rows != 0 || columns != 0) clear_outside(patch);
  }
  __device__ void clear_outside(Pixels& patch) const {
#pragma unroll
    for (int i = 0; i < Pixels::kHeight; ++i) {
#pragma unroll
      for (int j = 0; j < Pixels::kWidth; ++j) {
        if (((rows >> i | columns >> j) & 1) != 0) patch.at[i][j] = 0;
      }
    }
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
