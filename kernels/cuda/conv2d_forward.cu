// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, forward, with bias and epilogue.
///
/// Versions:
/// 1. One thread for an output of a sample, everything from global memory: two loads for each fma.
/// 2. A thread has 2 x 2 or 2 x 4 pixels x up to 10 filters, so that a weight serves 4 or 8 fmas and a pixel
///    up to 250; weights are shared memory broadcasts, four at a time; bias, epilogue and pool happen before
///    anything is written, and outputs that no pool window covers are not computed (conv2d_direct.cuh).
/// 3. The warps of a block share the input channels and add up at the end: 4 or 5 times as many warps for the
///    small layers of these networks, and an even load on the schedulers for the large ones.
///
/// Limits on an H100 (528 schedulers, 1.7 GHz, one launch each), of arithmetic / of memory:
/// Net, batch 64:     conv1  18 MFLOP, 0.8 MB  0.3 us / 0.3 us;  conv2  41 MFLOP, 0.5 MB   0.7 us / 0.2 us.
/// LeNet, batch 256:  conv1  62 MFLOP, 5.2 MB  1.1 us / 1.6 us;  conv2 819 MFLOP, 4.6 MB  14.3 us / 1.4 us.
/// Of the inner loop's instructions (sm_90, 2 x 4 pixels, 5 filters, 5 x 5 taps) 87 % are fmas.
#include "kernels/cuda/conv2d_direct.cuh"
#include "kernels/cuda/conv2d_generic_forward.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/kernels.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

/// Adds the bias, runs the epilogue and writes y and mask.
struct ForwardStore {
  int batch;
  OutputSize size;  ///< with those that the pool drops
  const float* bias;
  Epilogue epilogue;
  const StepState* state;
  float* y;
  std::uint8_t* mask;

  template <int kPool>
  __device__ void window(const WindowPlace& place, float (&v)[kPool * kPool], LastDraw& last) const {
    const int rows = place.height / kPool, columns = place.width / kPool;
    if (place.channel >= size.filters || place.row >= rows || place.column >= columns ||
        place.sample >= batch) {
      return;
    }
#pragma unroll
    for (float& number : v) number += __ldg(bias + place.channel);
    const std::uint32_t step = state == nullptr ? 0 : state->step;
    const EpilogueResult result = run_epilogue<kPool>(epilogue, step, place, v, last);
    const std::size_t pixel =
        (static_cast<std::size_t>(place.channel) * rows + place.row) * columns + place.column;
    y[pixel * batch + place.sample] = result.y;
    if (mask != nullptr) mask[pixel * batch + place.sample] = result.mask;
  }

  /// The warps of the block take windows in turn.
  template <int kPool, int kColumns, int kFilters>
  __device__ void windows(const GroupSums& sums, const TilePlace& tile) const {
    constexpr int kWide = kColumns / kPool, kWindows = kTileRows / kPool * kWide;
    LastDraw last;
    for (int i = threadIdx.x / kSamplesPerWarp; i < kFilters * kWindows; i += sums.groups) {
      const int filter = i / kWindows, a = i % kWindows / kWide * kPool, b = i % kWide * kPool;
      if (tile.row + a < tile.first_row || tile.column + b < tile.first_column) continue;
      float v[kPool * kPool];
#pragma unroll
      for (int k = 0; k < kPool * kPool; ++k)
        v[k] = sums.total((filter * kTileRows + a + k / kPool) * kColumns + b + k % kPool);
      window<kPool>({size.height, size.width, tile.filter + filter, (tile.row + a) / kPool,
                     (tile.column + b) / kPool, tile.sample},
                    v, last);
    }
  }
  template <int kColumns, int kFilters>
  __device__ void tile(const GroupSums& sums, const TilePlace& place) const {
    if (epilogue.pool == 2) {
      windows<2, kColumns, kFilters>(sums, place);
    } else {
      windows<1, kColumns, kFilters>(sums, place);
    }
  }
};

DirectArgs direct_args(const Conv2dShape& s, const float* x, const float* w) {
  const int taps = s.kernel_height * s.kernel_width;
  DirectArgs args(s.in_channels);
  args.batch = s.batch, args.height = s.in_height, args.width = s.in_width, args.padding = s.padding;
  args.x = x;
  args.filters = {w, s.out_channels, s.in_channels, static_cast<std::size_t>(s.in_channels * taps),
                  static_cast<std::size_t>(taps)};
  return args;
}

}  // namespace

void conv2d_forward(cudaStream_t stream, const Chip& chip, const Conv2dShape& s, const float* x,
                    const float* w, const float* b, const Epilogue& epilogue, const StepState* state,
                    float* y, std::uint8_t* mask) {
  const OutputSize all = {s.out_channels, s.out_height(), s.out_width()};
  const int pool = epilogue.pool;
  const OutputSize size = {all.filters, all.height / pool * pool, all.width / pool * pool};
  const ForwardStore store = {s.batch, all, b, epilogue, state, y, mask};
  const bool is_direct = s.stride == 1 && s.kernel_height == s.kernel_width;
  if (is_direct && s.kernel_height == 5) {
    launch_direct<5>(stream, chip, size, direct_args(s, x, w), store);
  } else if (is_direct && s.kernel_height == 3) {
    launch_direct<3>(stream, chip, size, direct_args(s, x, w), store);
  } else if (pool == 2) {
    launch_generic_forward<2>(stream, s, x, w, store);
  } else {
    launch_generic_forward<1>(stream, s, x, w, store);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
