// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution forward and the gradient of its weights; that of the data is in conv2d_backward_data.cu.
#include "kernels/cuda/conv2d_direct.cuh"
#include "kernels/cuda/conv2d_generic.cuh"
#include "kernels/cuda/conv2d_generic_weights.cuh"
#include "kernels/cuda/conv2d_patch.cuh"
#include "kernels/cuda/conv2d_staged.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/kernels.hpp"

namespace lockstep::LOCKSTEP_GPU {

// Convolution, forward, with bias and epilogue.
//
// Versions:
// 1. One thread for an output of a sample, everything from global memory: two loads for each fma.
// 2. A thread has 2 x 2 or 2 x 4 pixels x up to 10 filters, so that a weight serves 4 or 8 fmas and a pixel
// up to 250; weights are shared memory broadcasts, four at a time; bias, epilogue and pool happen before
// anything is written, and outputs that no pool window covers are not computed (conv2d_direct.cuh).
// 3. The warps of a block share the input channels and add up at the end: 4 or 5 times as many warps for the
// small layers of these networks, and an even load on the schedulers for the large ones.
// 4. Weights come eight at a time and, in narrow tiles, while the pixels are on their way, instead of one
// after another, each of which waits for the L2 cache; step and bias are read before the sums; with one
// input channel the epilogue happens in registers, a layer for all windows of a thread at once.
// 5. A lane copies the weights of one tap, of all filters, to places that are constants: a third of the instructions.
// Tiles of up to 5 filters without a border have registers for 20 warps in place of 15, and 3 x 3 filters with one
// come eight at a time.
//
// Limits on an H100 (528 schedulers, 1.7 GHz, one launch each), of arithmetic / of memory.
// Net, batch 64:     conv1  18 MFLOP, 0.8 MB  0.3 us / 0.3 us;  conv2  41 MFLOP, 0.5 MB   0.7 us / 0.2 us.
// LeNet, batch 256:  conv1  62 MFLOP, 5.2 MB  1.1 us / 1.6 us;  conv2 819 MFLOP, 4.6 MB  14.3 us / 1.4 us.
// Measured with version 4: conv2 of Net 5.5 us, of LeNet 32.3 us, whose 640 blocks filled a second round by a fifth.
// 87 % of the inner loop's instructions (sm_90, 2 x 4 pixels, 5 filters, 5 x 5 taps) are fmas.

namespace {

/// Runs an epilogue with a pool and without dropout on all windows of a thread, step by step.
template <int kCount>
__device__ inline void apply_to_all(const Epilogue& epilogue, PooledWindow<2> (&windows)[kCount]) {
  int done = 0;
#pragma unroll 1
  for (; done < epilogue.count && step_at(epilogue, done).kind == EpilogueKind::kRelu; ++done) {
#pragma unroll
    for (auto& window : windows) apply_relu(window);
  }
  if (step_at(epilogue, done++).kind == EpilogueKind::kMaxPool) {
#pragma unroll
    for (auto& window : windows) apply_max_pool(window);
  } else {
#pragma unroll
    for (auto& window : windows) apply_avg_pool(window);
  }
#pragma unroll 1
  for (; done < epilogue.count; ++done) {
#pragma unroll
    for (auto& window : windows) apply_relu(window);
  }
}

/// Adds the bias, runs the epilogue and writes y and mask.
struct ForwardStore {
  static constexpr bool kCanTakeRegisters = true;
  int batch;
  OutputSize size;  ///< with those that the pool drops
  const float* bias;
  Epilogue epilogue;
  const StepState* state;
  float* y;
  std::uint8_t* mask;
  bool from_registers = false;

  /// Values that a warp reads before it knows any output.
  struct Early {
    std::uint32_t step;
    float bias;  ///< lane l: that of the tile's filter l; 0 for -0, so that a sum of zeros is 0 everywhere

    __device__ float bias_of(int filter) const { return __shfl_sync(0xFFFFFFFFU, bias, filter); }
  };
  __device__ std::uint32_t step() const { return state == nullptr ? 0 : state->step; }
  __device__ Early early(const TilePlace& tile) const {
    const int lane = static_cast<int>(threadIdx.x) % kSamplesPerWarp;
    return {step(), load_input(bias + min(tile.filter + lane, size.filters - 1)) + 0.0F};
  }

  __device__ void write(std::size_t pixel, int sample, const EpilogueResult& result) const {
    y[pixel * batch + sample] = result.y;
    if (mask != nullptr) mask[pixel * batch + sample] = result.mask;
  }
  template <int kPool>
  __device__ bool is_there(const WindowPlace& place) const {
    return place.channel < size.filters && place.row < place.height / kPool &&
           place.column < place.width / kPool && place.sample < batch;
  }
  template <int kPool>
  __device__ std::size_t pixel_of(const WindowPlace& place) const {
    const int rows = place.height / kPool, columns = place.width / kPool;
    return (static_cast<std::size_t>(place.channel) * rows + place.row) * columns + place.column;
  }

  template <int kPool>
  __device__ void finish(const WindowPlace& place, float of_filter, std::uint32_t step,
                         float (&v)[kPool * kPool], LastDraw& last) const {
#pragma unroll
    for (float& number : v) number += of_filter;
    write(pixel_of<kPool>(place), place.sample, run_epilogue<kPool>(epilogue, step, place, v, last));
  }

  /// The warps of the block share the windows, one after the other.
  template <int kPool, int kColumns, int kFilters>
  __device__ void windows(const GroupSums& sums, const TilePlace& tile, const Early& early) const {
    constexpr int kWide = kColumns / kPool, kWindows = kTileRows / kPool * kWide;
    LastDraw last;
    for (int i = sums.group; i < kFilters * kWindows; i += sums.groups) {
      const int filter = i / kWindows, a = i % kWindows / kWide * kPool, b = i % kWide * kPool;
      const float of_filter = early.bias_of(filter);
      const bool is_mine = tile.row + a >= tile.first_row && tile.column + b >= tile.first_column;
      if (!is_mine || tile.filter + filter >= tile.end_filter) continue;
      float v[kPool * kPool];
#pragma unroll
      for (int k = 0; k < kPool * kPool; ++k)
        v[k] = sums.total((filter * kTileRows + a + k / kPool) * kColumns + b + k % kPool);
      const WindowPlace place = {
          size.height, size.width, tile.filter + filter, (tile.row + a) / kPool, (tile.column + b) / kPool,
          tile.sample};
      if (is_there<kPool>(place)) finish<kPool>(place, of_filter, early.step, v, last);
    }
  }
  template <int kColumns, int kFilters>
  __device__ void tile(const GroupSums& sums, const TilePlace& place, const Early& early) const {
    if (epilogue.pool == 2) {
      windows<2, kColumns, kFilters>(sums, place, early);
    } else {
      windows<1, kColumns, kFilters>(sums, place, early);
    }
  }

  /// With a pool, and where the thread has all sums of its windows.
  template <int kColumns, int kFilters>
  __device__ void registers(const TileSums<kColumns, kFilters>& sums, const TilePlace& tile,
                            const Early& early) const {
    constexpr int kPool = 2, kWide = kColumns / kPool, kWindows = kTileRows / kPool * kWide;
    PooledWindow<kPool> windows[kFilters * kWindows];
#pragma unroll
    for (int i = 0; i < kFilters * kWindows; ++i) {
      const int filter = i / kWindows, a = i % kWindows / kWide * kPool, b = i % kWide * kPool;
      const float of_filter = early.bias_of(filter);
#pragma unroll
      for (int k = 0; k < kPool * kPool; ++k)
        windows[i].v[k] = sums.at[filter][a + k / kPool][b + k % kPool] + of_filter;
    }
    apply_to_all(epilogue, windows);
    const WindowPlace first = {size.height,      size.width,          tile.filter,
                               tile.row / kPool, tile.column / kPool, tile.sample};
    const std::size_t pixel = pixel_of<kPool>(first);
    const int columns = size.width / kPool, pixels = size.height / kPool * columns;
#pragma unroll
    for (int i = 0; i < kFilters * kWindows; ++i) {
      const int filter = i / kWindows, down = i % kWindows / kWide, right = i % kWide;
      WindowPlace place = first;
      place.channel += filter, place.row += down, place.column += right;
      const bool is_mine =
          tile.row + down * kPool >= tile.first_row && tile.column + right * kPool >= tile.first_column;
      if (is_mine && is_there<kPool>(place)) {
        write(pixel + static_cast<std::size_t>(filter * pixels + down * columns + right), tile.sample,
              {windows[i].v[0], static_cast<std::uint8_t>(windows[i].passes)});
      }
    }
  }
};

FilterView filters_of(const Conv2dShape& s, const float* w) {
  const int taps = s.kernel_height * s.kernel_width;
  return {w, s.out_channels, s.in_channels * taps, taps};
}

DirectArgs direct_args(const Conv2dShape& s, const float* x, const float* w) {
  DirectArgs args(s.in_channels);
  args.batch = s.batch, args.height = s.in_height, args.width = s.in_width, args.padding = s.padding;
  args.x = x;
  args.filters = filters_of(s, w);
  return args;
}

}  // namespace

void NativeOps::conv2d_forward(Stream& stream, const Conv2dShape& s, const float* x, const float* w,
                               const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                               std::uint8_t* mask) {
  const OutputSize all = {s.out_channels, s.out_height(), s.out_width()};
  const int pool = epilogue.pool;
  const OutputSize size = {all.filters, all.height / pool * pool, all.width / pool * pool};
  const ForwardStore store = {s.batch, all, b,    epilogue,
                              state,   y,   mask, s.in_channels == 1 && pool == 2 && !has_dropout(epilogue)};
  const bool is_direct = s.is_plain() && s.kernel_height == s.kernel_width;
  if (is_direct && s.kernel_height == 5) {
    launch_direct<5, /*kAlwaysBorder=*/false>(on(stream), chip_, size, direct_args(s, x, w), store);
  } else if (is_direct && s.kernel_height == 3) {
    launch_direct<3, /*kAlwaysBorder=*/false>(on(stream), chip_, size, direct_args(s, x, w), store);
  } else {
    const Conv2dShape group = s.group();
    const GenericArgs args = {
        .shape = group,
        .steps = TapSteps::forward(s),
        .chains = ChannelGroups(group.in_channels),
        .outputs = group.out_channels,
        .y = size,
        .height = s.in_height,
        .width = s.in_width,
        .x = x,
        .filters = filters_of(group, w),
    };
    launch_generic(on(stream), args, store);
  }
}

// Convolution, gradients of filters and bias, added to exact sums.
//
// Versions:
// 1. A warp for each weight, a lane for each sample: two loads for each fma.
// 2. 4 taps x 4 filters in registers; by now 8 x 8 (conv2d_generic_weights.cuh).
// 3. All taps of a channel for up to 5 filters in registers, under a window that slides along rows of x: 10
// loads for 125 fmas. Warps share rows and samples, and the warps of a block add up before
// anything reaches the exact sum (conv2d_window.cuh).
// 4. If it fits, 4 filters and 2 channels a block from shared memory (conv2d_staged.cuh); 3 x 3 filters eight at a
// time, with 2 channels in a block. Lanes are added up by threads (conv2d_lane_sums.cuh).
//
// Limits on an H100 (528 schedulers, 1.7 GHz, one launch each), of arithmetic / of memory.
// Net, batch 64:     conv1  18 MFLOP, 1.7 MB  0.3 us / 0.5 us;  conv2   41 MFLOP,  0.7 MB   0.7 us / 0.2 us.
// LeNet, batch 256:  conv1  62 MFLOP, 14.6 MB 1.1 us / 4.4 us;  conv2  819 MFLOP,  7.6 MB  14.3 us / 2.3 us.
// Measured with version 3: conv2 of Net 6.4 us, of LeNet 64.9 us. Fmas are 86 % of the inner loop's instructions
// (sm_90, 5 x 5 taps) in version 4, 65 % in version 3; the start of a row of 8 pixels, what is copied and the sums over
// the lanes bring it to about 62 %.

void NativeOps::conv2d_backward_weights(Stream& stream, const Conv2dShape& s, int grain, const float* x,
                                        const float* dy, const ExactGradient& gradient) {
  const OutputSize y = {s.out_channels, s.out_height(), s.out_width()};
  const WeightGradientArgs args = {.shape = s.group(),
                                   .y = y,
                                   .rows = s.read_height(),
                                   .columns = s.read_width(),
                                   .grain = grain,
                                   .split = GradientSplit(s, grain),
                                   .x = x,
                                   .dy = dy,
                                   .gradient = gradient};
  const bool is_square = s.is_plain() && s.kernel_height == s.kernel_width;
  if (is_square && s.kernel_height == 5 && StagedTile::fits(chip_, args)) {
    StagedTile::queue(on(stream), args);
  } else if (is_square && s.kernel_height == 5) {
    launch_window<5>(on(stream), chip_, args);
  } else if (is_square && s.kernel_height == 3) {
    launch_window<3>(on(stream), chip_, args);
  } else {
    launch_generic_weights(on(stream), args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
