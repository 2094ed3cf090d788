// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Gradient of a fully connected layer's input: dx = w^T dy, spread through the epilogue before it.
///
/// Versions:
/// 1. A thread for each element of dx: dy is loaded once per feature, 320 and 800 times, and a thread waits
///    for one load after another.
/// 2. kFeatures x kSamples elements a thread, both matrices through shared memory in chunks of 64 rows: one
///    trip to L2 per chunk, and an FMA costs half a load of shared memory (8 x 1) or a quarter (8 x 2).
/// 3. The mask of the epilogue is loaded before the sums, which hide its latency, and the windows of a thread
///    are found by adding, not by dividing for each one. This one.
///
/// Limits on an H100. Net fc1 at batch 64 is 2 MFLOP (0.04 us) and 0.5 MB with the expanded dx (0.15 us),
/// LeNet fc1 at batch 256 is 52 MFLOP (0.9 us) and 4.3 MB (1.3 us). One launch each.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/sum_cuts.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kLanes;
constexpr int kChunk = 64;  ///< outputs, the inner dimension, in shared memory at once
constexpr int kUnroll = 4;  ///< divides kChunk
static_assert(kChunk % kUnroll == 0 && kOutputBlock % kChunk == 0);

struct DataArgs {
  LinearShape shape;
  const float *dy, *w;
  EpilogueBackward expand;
  int pool;  ///< pool of the epilogue; 0: there is none
  float* dx;
};

/// Thread (lane, warp) computes kFeatures neighbouring features of samples lane, lane + 32, ...
template <int kFeatures, int kSamples>
struct DataTile {
  static constexpr int kWidth = kWarps * kFeatures;   ///< features of a block
  static constexpr int kColumns = kLanes * kSamples;  ///< samples of a block
  static constexpr int kChunkFloats = kChunk * (kWidth + kColumns);
  using Earlier = EarlierSums<kFeatures * kSamples>;
  /// Blocks on a multiprocessor at a time. nvcc 13 finds registers for so many, and nearly all loads of a chunk stay on
  /// their way. (8 are the most that a T4 has threads for; but tiles of 2 features have at most two.)
  static constexpr int kBlocks = kFeatures <= 4 ? 8 : kSamples == 1 ? 6 : 5;

  static std::size_t shared_bytes(const LinearShape& shape) {
    const int blocks = shape.out_features > kOutputBlock ? Earlier::floats(kThreads) : 0;
    return (kChunkFloats + blocks) * sizeof(float);
  }

  int feature, column;  ///< the thread's first ones

  __device__ int sample(int s) const { return column + s * kLanes; }
};

/// kChunk rows of a matrix [rows, columns] from `row` on, kWidth columns from `column` on. They are dealt out to the
/// threads of the block. Rows beyond the matrix are 0, columns beyond it repeat the last one.
template <int kWidth>
__device__ inline void load_tile(const float* matrix, int rows, int columns, int row, int column,
                                 float (&part)[kChunk * kWidth / kThreads]) {
  static_assert(kThreads % kWidth == 0);
  constexpr int kRowStep = kThreads / kWidth;
  const int thread = static_cast<int>(threadIdx.x);
  const int first = row + thread / kWidth;
  const float* from =
      matrix + static_cast<std::size_t>(first) * columns + min(column + thread % kWidth, columns - 1);
  const std::size_t step = static_cast<std::size_t>(kRowStep) * columns;
#pragma unroll
  for (int j = 0; j < kChunk / kRowStep; ++j, from += step)
    part[j] = first + j * kRowStep < rows ? load_input(from) : 0.0F;
}

template <int kCount>
__device__ inline void store_tile(const float (&part)[kCount], float* shared) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) shared[static_cast<int>(threadIdx.x) + j * kThreads] = part[j];
}

/// Adds kUnroll rows of the chunk to the sums. `w` and `dy` are the thread's places in the first one.
template <int kFeatures, int kSamples>
__device__ inline void add_rows(const float* w, const float* dy, float (&sum)[kFeatures][kSamples]) {
  using Tile = DataTile<kFeatures, kSamples>;
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    float weights[kFeatures];
    load_neighbours(w + k * Tile::kWidth, weights);
#pragma unroll
    for (int s = 0; s < kSamples; ++s) {
      const float gradient = dy[k * Tile::kColumns + s * kLanes];
#pragma unroll
      for (int f = 0; f < kFeatures; ++f) sum[f][s] = fmaf(weights[f], gradient, sum[f][s]);
    }
  }
}

/// The thread's sums over all outputs, in their order, block by block.
template <int kFeatures, int kSamples>
__device__ inline void sum_outputs(const DataArgs& args, float* shared, float (&sum)[kFeatures][kSamples]) {
  using Tile = DataTile<kFeatures, kSamples>;
  const LinearShape& shape = args.shape;
  float* const w_rows = shared;
  float* const dy_rows = shared + kChunk * Tile::kWidth;
  const float* const my_w = w_rows + threadIdx.x / kLanes * kFeatures;
  const float* const my_dy = dy_rows + threadIdx.x % kLanes;
  const typename Tile::Earlier earlier(shared + Tile::kChunkFloats, threadIdx.x, kThreads);
  const auto element = [&](int e) -> float& { return sum[e / kSamples][e % kSamples]; };
  for (int first = 0; first < shape.out_features; first += kChunk) {
    if (first > 0 && first % kOutputBlock == 0) earlier.fold(first == kOutputBlock, element);
    float w_part[kChunk * Tile::kWidth / kThreads], dy_part[kChunk * Tile::kColumns / kThreads];
    load_tile<Tile::kWidth>(args.w, shape.out_features, shape.in_features, first, blockIdx.x * Tile::kWidth,
                            w_part);
    load_tile<Tile::kColumns>(args.dy, shape.out_features, shape.batch, first, blockIdx.y * Tile::kColumns,
                              dy_part);
    if (first > 0) __syncthreads();
    store_tile(w_part, w_rows);
    store_tile(dy_part, dy_rows);
    __syncthreads();
    const int rows = min(kChunk, shape.out_features - first);
#pragma unroll 2
    for (int k = 0; k < rows; k += kUnroll)
      add_rows(my_w + k * Tile::kWidth, my_dy + k * Tile::kColumns, sum);
  }
  if (shape.out_features > kOutputBlock) earlier.finish(element);
#pragma unroll
  for (int e = 0; e < kFeatures * kSamples; ++e) element(e) += 0.0F;  // -0 becomes 0
}

/// The masks of the thread's elements.
template <int kFeatures, int kSamples>
__device__ inline void load_masks(const DataArgs& args, const DataTile<kFeatures, kSamples>& tile,
                                  unsigned (&mask)[kFeatures][kSamples]) {
#pragma unroll
  for (int f = 0; f < kFeatures; ++f) {
    const int feature = min(tile.feature + f, args.shape.in_features - 1);
#pragma unroll
    for (int s = 0; s < kSamples; ++s) {
      const int column = min(tile.sample(s), args.shape.batch - 1);
      mask[f][s] =
          load_input(args.expand.mask + static_cast<std::size_t>(feature) * args.shape.batch + column);
    }
  }
}

template <int kFeatures, int kSamples>
__device__ inline void store_plain(const DataArgs& args, const DataTile<kFeatures, kSamples>& tile,
                                   const float (&sum)[kFeatures][kSamples]) {
#pragma unroll
  for (int s = 0; s < kSamples; ++s) {
    if (tile.sample(s) >= args.shape.batch) return;
    float* const to = args.dx + static_cast<std::size_t>(tile.feature) * args.shape.batch + tile.sample(s);
#pragma unroll
    for (int f = 0; f < kFeatures; ++f) {
      if (tile.feature + f < args.shape.in_features)
        to[static_cast<std::size_t>(f) * args.shape.batch] = sum[f][s];
    }
  }
}

template <int kPool, int kFeatures, int kSamples>
__device__ inline void store_windows(const DataArgs& args, const DataTile<kFeatures, kSamples>& tile,
                                     const unsigned (&mask)[kFeatures][kSamples],
                                     const float (&sum)[kFeatures][kSamples]) {
#pragma unroll
  for (int s = 0; s < kSamples; ++s) {
    if (tile.sample(s) >= args.shape.batch) return;
    WindowWalk<kPool> walk(args.expand, args.shape.batch, tile.feature, tile.sample(s), args.dx);
#pragma unroll
    for (int f = 0; f < kFeatures; ++f) {
      if (tile.feature + f < args.shape.in_features) walk.store(args.expand, mask[f][s], sum[f][s]);
      walk.advance(args.expand);
    }
  }
}

/// kPool is that of the epilogue, or 0 if there is none.
template <int kFeatures, int kSamples, int kPool>
__global__ void __launch_bounds__(kThreads, DataTile<kFeatures, kSamples>::kBlocks)
    backward_data_kernel(DataArgs args) {
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  using Tile = DataTile<kFeatures, kSamples>;
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const Tile tile = {static_cast<int>(blockIdx.x) * Tile::kWidth + warp * kFeatures,
                     static_cast<int>(blockIdx.y) * Tile::kColumns + lane};
  float sum[kFeatures][kSamples] = {};
  if constexpr (kPool == 0) {
    sum_outputs(args, shared, sum);
    store_plain(args, tile, sum);
  } else {
    unsigned mask[kFeatures][kSamples];
    load_masks(args, tile, mask);
    sum_outputs(args, shared, sum);
    store_windows<kPool>(args, tile, mask, sum);
  }
}

template <int kFeatures, int kSamples>
dim3 grid_of(const LinearShape& shape) {
  using Tile = DataTile<kFeatures, kSamples>;
  return dim3(static_cast<unsigned>(pieces(shape.in_features, Tile::kWidth)),
              static_cast<unsigned>(pieces(shape.batch, Tile::kColumns)));
}

template <int kFeatures, int kSamples>
void launch_backward_data(cudaStream_t stream, const DataArgs& args) {
  const LaunchShape shape = {grid_of<kFeatures, kSamples>(args.shape), dim3(kThreads),
                             DataTile<kFeatures, kSamples>::shared_bytes(args.shape)};
  const auto kernel = args.pool == 0   ? backward_data_kernel<kFeatures, kSamples, 0>
                      : args.pool == 1 ? backward_data_kernel<kFeatures, kSamples, 1>
                                       : backward_data_kernel<kFeatures, kSamples, 2>;
  launch(stream, shape, kernel, args);
}

}  // namespace

void NativeOps::linear_backward_data(Stream& stream, const LinearShape& shape, const float* dy,
                                     const float* w, const EpilogueBackward* expand, float* dx) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.in_features >= 1 && shape.out_features >= 1);
  LOCKSTEP_CHECK(expand == nullptr ||
                 expand->channels * expand->pooled_height() * expand->pooled_width() == shape.in_features);
  const DataArgs args = {
      shape, dy, w, expand == nullptr ? EpilogueBackward{} : *expand, expand == nullptr ? 0 : expand->pool,
      dx};
  if (fills(grid_of<8, 2>(shape), 2 * chip_.multiprocessors)) {
    launch_backward_data<8, 2>(on(stream), args);
  } else if (fills(grid_of<8, 1>(shape), chip_.multiprocessors)) {
    launch_backward_data<8, 1>(on(stream), args);
  } else if (fills(grid_of<4, 1>(shape), chip_.multiprocessors)) {
    launch_backward_data<4, 1>(on(stream), args);
  } else {
    launch_backward_data<2, 1>(on(stream), args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
