// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Gradients of a fully connected layer's weights and bias, added to exact sums grain by grain. dw = dy x^T and db =
/// the sum of dy.
///
/// Versions:
/// 1. A thread for each weight walks over the samples of a grain: two loads an FMA, each of 32 sectors.
/// 2. Tiles of 16 x 16 or 32 x 32 weights; rows of x and dy of 64 samples through shared memory, padded so
///    that eight rows are read as float4 without conflict; 2 x 2 or 4 x 4 weights a thread: 4 or 8 FMA for
///    each float4. A bias is a weight whose x is 1, in the column after the last: it needs no code.
/// 3. All numbers of a thread's part of the tile are on their way from L2 at once. This one.
///
/// Limits on an H100. Net fc1 at batch 64 is 2 MFLOP (0.04 us) and 16,050 atomic additions, LeNet fc1 at
/// batch 256 in grains of 64 is 52 MFLOP (0.9 us), 7 MB from L2 (1.3 us) and 410,112 additions (0.8 us at one
/// sector a clock and slice of L2). One launch each.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/sum_cuts.hpp"

#include <algorithm>

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kSide = 8;  ///< a block is kSide x kSide threads
constexpr int kThreads = kSide * kSide;
constexpr int kChunk = kThreads;     ///< samples in shared memory at once: a thread loads one of each row
constexpr int kStride = kChunk + 4;  ///< eight neighbouring rows lie in different banks
static_assert(kSampleBlock % kChunk == 0);

struct WeightsArgs {
  LinearShape shape;
  int grain;
  const float *x, *dy;
  ExactGradient gradient;
};

/// Samples [begin, end): a grain, or a chunk of one.
struct Columns {
  int begin, end;
};

/// Loads this thread's column of kSide * kPer rows from `row` on; 0 beyond the last column. Rows beyond the last
/// one repeat it; with kOnes, the row after the last one consists of ones.
template <bool kOnes, int kPer>
__device__ inline void load_column(const float* matrix, int rows, int batch, int row, const Columns& columns,
                                   float (&part)[kSide * kPer]) {
  const int n = columns.begin + static_cast<int>(threadIdx.x);
  const bool inside = n < columns.end;
#pragma unroll
  for (int r = 0; r < kSide * kPer; ++r) {
    const float* from = matrix + static_cast<std::size_t>(min(row + r, rows - 1)) * batch + n;
    const bool is_one = kOnes && row + r == rows;
    part[r] = !inside ? 0.0F : is_one ? 1.0F : load_input(from);
  }
}

template <int kRows>
__device__ inline void store_column(const float (&part)[kRows], float* shared) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) shared[r * kStride + static_cast<int>(threadIdx.x)] = part[r];
}

/// Loads four samples of rows first, first + kSide, ...
template <int kPer>
__device__ inline void load_rows(const float* shared, int first, float (&rows)[kPer][4]) {
#pragma unroll
  for (int r = 0; r < kPer; ++r) load_neighbours(shared + (first + r * kSide) * kStride, rows[r]);
}

/// Adds the products of `samples` samples, in their order.
template <int kPer>
__device__ inline void multiply_chunk(const float* x, const float* dy, int samples,
                                      float (&sum)[kPer][kPer]) {
  const int o = static_cast<int>(threadIdx.x) / kSide, i = static_cast<int>(threadIdx.x) % kSide;
#pragma unroll 2
  for (int n = 0; n < samples; n += 4) {
    float of_o[kPer][4], of_i[kPer][4];
    load_rows(dy + n, o, of_o);
    load_rows(x + n, i, of_i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int a = 0; a < kPer; ++a) {
#pragma unroll
        for (int b = 0; b < kPer; ++b) sum[a][b] = fmaf(of_o[a][k], of_i[b][k], sum[a][b]);
      }
    }
  }
}

/// The sums of one grain for this thread's weights, block by block.
template <int kPer>
__device__ inline void sum_grain(const WeightsArgs& args, const Columns& grain, float* shared,
                                 float (&sum)[kPer][kPer]) {
  constexpr int kRows = kSide * kPer;
  const LinearShape& shape = args.shape;
  float* const x_rows = shared;
  float* const dy_rows = shared + kRows * kStride;
  const EarlierSums<kPer * kPer> earlier(shared + 2 * kRows * kStride, threadIdx.x, kThreads);
  const auto element = [&](int e) -> float& { return sum[e / kPer][e % kPer]; };
  for (int begin = grain.begin; begin < grain.end; begin += kChunk) {
    const int before = begin - grain.begin;
    if (before > 0 && before % kSampleBlock == 0) earlier.fold(before == kSampleBlock, element);
    const Columns columns = {begin, grain.end};
    float x[kRows], dy[kRows];
    load_column<true, kPer>(args.x, shape.in_features, shape.batch, blockIdx.x * kRows, columns, x);
    load_column<false, kPer>(args.dy, shape.out_features, shape.batch, blockIdx.y * kRows, columns, dy);
    __syncthreads();  // the last chunk has been read
    store_column(x, x_rows);
    store_column(dy, dy_rows);
    __syncthreads();
    multiply_chunk(x_rows, dy_rows, min(kChunk, grain.end - begin), sum);
  }
  if (grain.end - grain.begin > kSampleBlock) earlier.finish(element);
}

__device__ inline void add_weight(const WeightsArgs& args, int o, int i, float term) {
  const int inputs = args.shape.in_features;
  if (o >= args.shape.out_features || i > inputs) return;
  if (i == inputs) {
    add_exact(args.gradient.bias, o, term);
  } else {
    add_exact(args.gradient.weight, static_cast<std::size_t>(o) * inputs + i, term);
  }
}

/// Blocks on a multiprocessor: as many as leave registers for all loads of a chunk.
template <int kPer>
__global__ void __launch_bounds__(kThreads, kPer == 2 ? 7 : 5) backward_weights_kernel(WeightsArgs args) {
  constexpr int kRows = kSide * kPer;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int o = blockIdx.y * kRows + threadIdx.x / kSide, i = blockIdx.x * kRows + threadIdx.x % kSide;
  const int grains = pieces(args.shape.batch, args.grain);
  for (int g = blockIdx.z; g < grains; g += gridDim.z) {
    float sum[kPer][kPer] = {};
    const int begin = g * args.grain;
    sum_grain(args, {begin, begin + min(args.grain, args.shape.batch - begin)}, shared, sum);
#pragma unroll
    for (int a = 0; a < kPer; ++a) {
#pragma unroll
      for (int b = 0; b < kPer; ++b) add_weight(args, o + a * kSide, i + b * kSide, sum[a][b]);
    }
  }
}

template <int kPer>
LaunchShape launch_shape(const WeightsArgs& args) {
  constexpr int kRows = kSide * kPer, kMostGrains = 65535;
  const dim3 grid(static_cast<unsigned>(pieces(args.shape.in_features + 1, kRows)),
                  static_cast<unsigned>(pieces(args.shape.out_features, kRows)),
                  static_cast<unsigned>(std::min(pieces(args.shape.batch, args.grain), kMostGrains)));
  const int blocks = args.grain > kSampleBlock ? EarlierSums<kPer * kPer>::floats(kThreads) : 0;
  return {grid, dim3(kThreads), (2 * kRows * kStride + blocks) * sizeof(float)};
}

}  // namespace

void NativeOps::linear_backward_weights(Stream& stream, const LinearShape& shape, int grain, const float* x,
                                        const float* dy, const ExactGradient& gradient) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.in_features >= 1 && shape.out_features >= 1 && grain >= 1);
  const WeightsArgs args = {shape, grain, x, dy, gradient};
  const LaunchShape large = launch_shape<4>(args);
  if (fills(large.grid, 2 * chip_.multiprocessors)) {
    launch(on(stream), large, backward_weights_kernel<4>, args);
  } else {
    launch(on(stream), launch_shape<2>(args), backward_weights_kernel<2>, args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
