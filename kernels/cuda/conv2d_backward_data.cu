// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, gradient of its input, and the backward pass of the epilogue before it.
///
/// Versions:
/// 1. One thread for a pixel of dx of a sample, everything from global memory. Filters without another version
///    use tiles by now (conv2d_generic.cuh).
/// 2. The forward kernel on dy with a border of zeros and the filters turned around (conv2d_direct.cuh). For
///    conv2 of Net and LeNet more than half of the products are with zeros of the border.
/// 3. Rows of dy are scattered into whole rows of dx (conv2d_scatter.cuh): no such product is left. Version 2
///    stays for wide images, whose borders matter little.
/// 4. Rows of dy are on their way while others are added: the next one in tiles of 4 or 5 channels, five in
///    those of 2, which few warps share. Rows of dx with the most work start first. Masks come eight at a
///    time.
/// 5. Weights are copied by a third of the instructions. Rows and columns of dy that a pool dropped are left out: a
///    fifth of LeNet's. Tiles of up to 8 columns have registers for 20 warps in place of 15, so that its 520 blocks are
///    all there at once.
/// In all of them the gradient spreads over the pool windows of the epilogue before, so that this needs no pass
/// over memory. With a bias it is the forward pass of a transposed convolution.
///
/// Limits on an H100 (528 schedulers, 1.7 GHz, one launch each), of arithmetic / of memory.
/// Net conv2, batch 64:      41 MFLOP,  1.8 MB   0.7 us / 0.5 us.
/// LeNet conv2, batch 256:  819 MFLOP, 18.9 MB  14.3 us / 5.7 us.
/// Measured with version 4: 7.2 us and 55.9 us. 74 % of the inner loop's instructions (sm_90) are fmas in LeNet's tile
/// (8 columns, 4 channels), 62 % in Net's (8 columns, 2 channels). LeNet's reads dy 25 times from the L2 cache, 82 MB,
/// which takes 19 us.
#include "common/error.hpp"
#include "kernels/cuda/conv2d_direct.cuh"
#include "kernels/cuda/conv2d_generic.cuh"
#include "kernels/cuda/conv2d_patch.cuh"
#include "kernels/cuda/conv2d_scatter.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/kernels.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

/// Writes dx, or what the epilogue before it makes of dx.
struct GradientStore {
  static constexpr bool kCanTakeRegisters = false;
  struct Early {};
  int batch;
  OutputSize size;
  int padding;        ///< padding of the forward direction
  const float* bias;  ///< one number for each channel of dx; null: none
  bool expands;
  EpilogueBackward expand;
  float* dx;

  __device__ void one(int channel, int row, int column, int sample, float gradient) const {
    const WindowPlace at = {size.height, size.width, channel, row, column, sample};
    if (row >= size.height || sample >= batch || !is_inside(at)) return;
    if (!expands) {
      write<0>(at, 0, gradient);
    } else if (expand.pool == 2) {
      write<2>(at, mask_of(at), gradient);
    } else {
      write<1>(at, mask_of(at), gradient);
    }
  }

  __device__ Early early(const TilePlace& /*tile*/) const { return {}; }

  /// The warps of the block share the pixels, one after the other.
  template <int kColumns, int kFilters>
  __device__ void tile(const GroupSums& sums, const TilePlace& tile, const Early& /*early*/) const {
    for (int i = sums.group; i < sums.outputs; i += sums.groups) {
      const int filter = tile.filter + i / (kTileRows * kColumns), a = i / kColumns % kTileRows,
                b = i % kColumns;
      if (tile.row + a < tile.first_row || tile.column + b < tile.first_column) continue;
      if (filter >= tile.end_filter) continue;
      one(filter, tile.row + a * tile.apart, tile.column + b * tile.apart, tile.sample, sums.total(i) + 0.0F);
    }
  }
  template <int kWidth, int kFilters>
  __device__ void row(const GroupSums& sums, const RowPlace& place) const {
    if (place.sample >= batch) return;
    if (!expands) {
      row_of_pixels<kWidth, kFilters, 0>(sums, place);
    } else if (expand.pool == 2) {
      row_of_pixels<kWidth, kFilters, 2>(sums, place);
    } else {
      row_of_pixels<kWidth, kFilters, 1>(sums, place);
    }
  }

  /// The warps of the block share the pixels, and load the masks of some at a time.
  ///
  /// @tparam kPool  pool of the epilogue before; 0 where there is none
  template <int kWidth, int kFilters, int kPool>
  __device__ void row_of_pixels(const GroupSums& sums, const RowPlace& place) const {
    constexpr int kAtOnce = kPool == 0 ? 1 : 8, kMaskBits = 4;
    const int warp = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
#pragma unroll 1
    for (int first = warp; first < sums.outputs; first += kAtOnce * sums.groups) {
      unsigned masks = 0;
      if constexpr (kPool > 0) {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          const int i = first + k * sums.groups;
          const WindowPlace at = pixel_at<kWidth>(i, place);
          if (i < sums.outputs && is_inside(at)) masks |= mask_of(at) << (k * kMaskBits);
        }
      }
#pragma unroll 1
      for (int k = 0, i = first; k < kAtOnce && i < sums.outputs; ++k, i += sums.groups) {
        const WindowPlace at = pixel_at<kWidth>(i, place);
        if (is_inside(at)) write<kPool>(at, masks >> (k * kMaskBits), sums.total(i) + 0.0F);
      }
    }
    for (int column = kWidth - padding; column < size.width; ++column) {  // that no pixel of dy reaches
      for (int f = warp; f < kFilters; f += sums.groups) {
        const WindowPlace at = {size.height, size.width, place.filter + f, place.row, column, place.sample};
        if (is_inside(at)) write<kPool>(at, 0, 0.0F);
      }
    }
  }
  template <int kWidth>
  __device__ WindowPlace pixel_at(int i, const RowPlace& place) const {
    return {size.height, size.width,           place.filter + i / kWidth,
            place.row,   i % kWidth - padding, place.sample};
  }
  __device__ bool is_inside(const WindowPlace& at) const {
    return at.channel < size.filters && at.column >= 0 && at.column < size.width;
  }
  /// A pixel of dx is a window of the epilogue before.
  __device__ unsigned mask_of(const WindowPlace& at) const {
    return load_input(expand.mask +
                      pixel_index(at.channel, size.height, at.row, size.width, at.column) * batch +
                      at.sample);
  }
  template <int kPool>
  __device__ void write(const WindowPlace& at, unsigned mask, float gradient) const {
    if constexpr (kPool == 0) {
      if (bias != nullptr) gradient += load_input(bias + at.channel);
      dx[pixel_index(at.channel, size.height, at.row, size.width, at.column) * batch + at.sample] = gradient;
    } else {
      const std::size_t corner =
          pixel_index(at.channel, expand.height, at.row * kPool, expand.width, at.column * kPool);
      store_window<kPool>(expand, at, mask, expand.factors.times(gradient), static_cast<std::size_t>(batch),
                          dx + corner * batch + at.sample);
    }
  }
  static __device__ std::size_t pixel_index(int channel, int height, int row, int width, int column) {
    // In 32 bits, which are quicker: a sample has fewer than 2^31 numbers.
    return static_cast<std::size_t>((channel * height + row) * width + column);
  }
};

/// Filters for a convolution whose outputs are the channels of dx and whose channels are those of dy.
FilterView transposed(const Conv2dShape& s, const float* w) {
  const int taps = s.kernel_height * s.kernel_width;
  return {w, s.in_channels, taps, s.in_channels * taps};
}

template <int kSize>
void square_data_gradient(cudaStream_t stream, const Chip& chip, const Conv2dShape& s, const float* dy,
                          const float* w, const GradientStore& store) {
  if (can_scatter(s.read_width())) {
    ScatterArgs args(s.out_channels);
    args.batch = s.batch, args.height = s.out_height(), args.width = s.out_width();
    args.rows = s.read_height(), args.columns = s.read_width();
    args.padding = s.padding, args.dy = dy, args.filters = transposed(s, w);
    launch_scatter<kSize>(stream, chip, store.size, args, store);
  } else {
    DirectArgs args(s.out_channels);
    args.batch = s.batch, args.height = s.out_height(), args.width = s.out_width();
    args.padding = kSize - 1 - s.padding, args.x = dy, args.filters = transposed(s, w);
    args.filters.backwards = true;
    launch_direct<kSize, /*kAlwaysBorder=*/true>(stream, chip, store.size, args, store);
  }
}

}  // namespace

void NativeOps::conv2d_backward_data(Stream& stream, const Conv2dShape& s, const float* dy, const float* w,
                                     const float* b, const EpilogueBackward* expand, float* dx) {
  LOCKSTEP_CHECK(expand == nullptr ||
                 (b == nullptr && expand->channels == s.in_channels &&
                  expand->pooled_height() == s.in_height && expand->pooled_width() == s.in_width));
  const OutputSize size = {s.in_channels, s.in_height, s.in_width};
  const GradientStore store = {.batch = s.batch,
                               .size = size,
                               .padding = s.padding,
                               .bias = b,
                               .expands = expand != nullptr,
                               .expand = expand != nullptr ? *expand : EpilogueBackward{},
                               .dx = dx};
  const bool is_square = s.is_plain() && s.kernel_height == s.kernel_width;
  if (is_square && s.kernel_height == 5) {
    square_data_gradient<5>(on(stream), chip_, s, dy, w, store);
  } else if (is_square && s.kernel_height == 3) {
    square_data_gradient<3>(on(stream), chip_, s, dy, w, store);
  } else {
    const Conv2dShape group = s.group();
    const GenericArgs args = {
        .shape = group,
        .steps = TapSteps::backward(s),
        .chains = ChannelGroups(group.out_channels),
        .outputs = group.in_channels,
        .y = size,
        .height = s.out_height(),
        .width = s.out_width(),
        .x = dy,
        .filters = transposed(group, w),
    };
    launch_generic(on(stream), args, store);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
