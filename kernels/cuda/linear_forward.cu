// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Forward pass of a fully connected layer: y = epilogue(w x + b).
///
/// Versions:
/// 1. A thread for each output, a warp for 32 samples of one output: every x is loaded once per output, 50
///    and 128 times, and a thread waits for 320 or 800 loads, one after another.
/// 2. kOutputs outputs a thread: a loaded x serves them all, the weights are broadcasts from shared memory.
///    L2 traffic falls by kOutputs, but a few hundred warps still walk the whole inner dimension, waiting.
/// 3. The inner dimension is cut into up to 16 slices, one for each warp of a block: 16 times the warps, a
///    16th of the way. Partial sums meet in shared memory and are added in order of slices.
/// 4. Twenty x of a thread are on their way before the first is used, which is the whole slice of a layer of
///    320 inputs: one trip to L2 instead of three. This one.
///
/// Limits on an H100. Net fc1 at batch 64 is 2 MFLOP (0.04 us) and 160 KB (0.05 us), LeNet fc1 at batch 256
/// is 52 MFLOP (0.9 us) and 1.4 MB (0.4 us), or 16 MB from L2 with tiles of 8 x 32 (about 3 us). One launch
/// each; the second layers only wait for memory: a launch and two trips to L2.
#include "common/error.hpp"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/sum_cuts.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kGroup = 10;  ///< inner indices whose x a thread loads at once; two groups are on their way
constexpr int kChunk = 60;  ///< inner indices of a slice whose weights are in shared memory at once
static_assert(kChunk % (2 * kGroup) == 0 && InputSlices::kBlock % kChunk == 0);

struct ForwardArgs {
  LinearShape shape;
  const float *x, *w, *b;
  Epilogue epilogue;
  const StepState* state;
  float* y;
  std::uint8_t* mask;
  int slices;  ///< warps of a block
  int length;  ///< inner indices of a slice; the last ones may be shorter or empty
};

/// A block computes kOutputs outputs of kLanes * kSamples samples. Thread (lane, slice): its slice of the sums
/// of samples lane, lane + 32, ...
template <int kOutputs, int kSamples>
struct ForwardTile {
  static constexpr int kElements = kOutputs * kSamples;
  /// Floats between the weights of neighbouring inner indices: as float4, eight lanes write without conflict.
  static constexpr int kStride = kOutputs < 8 ? kOutputs : kOutputs + 4;

  /// Floats before the sums of blocks.
  __host__ __device__ static int front_floats(int slices, int length) {
    const int weights = slices * chunk_rows(length) * kStride, partial = slices * kElements * kLanes;
    return weights > partial ? weights : partial;
  }
  static int block_floats(int slices, int length) {
    return length > InputSlices::kBlock ? EarlierSums<kElements>::floats(slices * kLanes) : 0;
  }
  __host__ __device__ static int chunk_rows(int length) {
    return length < kChunk ? pieces(length, kGroup) * kGroup : kChunk;
  }
};

/// The inner indices [begin, end) of a warp.
struct InputSlice {
  int begin, end;
};

template <int kSamples>
__device__ inline void load_x(const ForwardArgs& args, int i, const InputSlice& slice,
                              const int (&column)[kSamples], float (&x)[kSamples][kGroup]) {
  const float* row = args.x + static_cast<std::size_t>(i) * args.shape.batch;
#pragma unroll
  for (int k = 0; k < kGroup; ++k, row += args.shape.batch) {
#pragma unroll
    for (int s = 0; s < kSamples; ++s) x[s][k] = i + k < slice.end ? load_input(row + column[s]) : 0.0F;
  }
}

/// Weights of the inner indices from i on to shared memory, as [inner index][output]; 0 beyond the slice.
template <int kOutputs, int kStride>
__device__ inline void stage_weights(const ForwardArgs& args, int i, const InputSlice& slice, int rows,
                                     int output, int lane, float* shared) {
  float w[pieces(kChunk, kLanes)][kOutputs];
#pragma unroll
  for (int part = 0; part < pieces(kChunk, kLanes); ++part) {
    const int k = part * kLanes + lane;
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const int row = min(output + o, args.shape.out_features - 1);
      const float* from = args.w + static_cast<std::size_t>(row) * args.shape.in_features + i + k;
      w[part][o] = k < rows && i + k < slice.end ? load_input(from) : 0.0F;
    }
  }
#pragma unroll
  for (int part = 0; part < pieces(kChunk, kLanes); ++part) {
    const int k = part * kLanes + lane;
    if (k < rows) store_neighbours(w[part], shared + k * kStride);
  }
}

template <int kOutputs, int kSamples, int kStride>
__device__ inline void multiply_group(const float* weights, const float (&x)[kSamples][kGroup],
                                      float (&sum)[kOutputs][kSamples]) {
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    float w[kOutputs];
    load_neighbours(weights + k * kStride, w);
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
#pragma unroll
      for (int s = 0; s < kSamples; ++s) sum[o][s] = fmaf(w[o], x[s][k], sum[o][s]);
    }
  }
}

/// This warp's part of the sums. While a group of x is multiplied, the next two are on their way.
template <int kOutputs, int kSamples>
__device__ inline void sum_slice(const ForwardArgs& args, const InputSlice& slice, int output, int lane,
                                 const int (&column)[kSamples], float* shared,
                                 const EarlierSums<kOutputs * kSamples>& earlier,
                                 float (&sum)[kOutputs][kSamples]) {
  using Tile = ForwardTile<kOutputs, kSamples>;
  constexpr int kStride = Tile::kStride;
  const int rows = Tile::chunk_rows(args.length);
  const auto element = [&](int e) -> float& { return sum[e / kSamples][e % kSamples]; };
  float even[kSamples][kGroup], odd[kSamples][kGroup];
  load_x(args, slice.begin, slice, column, even);
  load_x(args, slice.begin + kGroup, slice, column, odd);
  for (int chunk = 0; chunk < args.length; chunk += rows) {
    const int first = slice.begin + chunk;
    if (chunk > 0 && chunk % InputSlices::kBlock == 0) earlier.fold(chunk == InputSlices::kBlock, element);
    stage_weights<kOutputs, kStride>(args, first, slice, rows, output, lane, shared);
    __syncthreads();
    const int end = min(rows, args.length - chunk);
    for (int k = 0; k < end; k += 2 * kGroup) {
      multiply_group<kOutputs, kSamples, kStride>(shared + k * kStride, even, sum);
      load_x(args, first + k + 2 * kGroup, slice, column, even);
      if (k + kGroup >= end) break;
      multiply_group<kOutputs, kSamples, kStride>(shared + (k + kGroup) * kStride, odd, sum);
      load_x(args, first + k + 3 * kGroup, slice, column, odd);
    }
    __syncthreads();
  }
  if (args.length > InputSlices::kBlock) earlier.finish(element);
}

__device__ inline void finish(const ForwardArgs& args, std::uint32_t step, int output, int column,
                              float sum) {
  const WindowPlace place = {1, 1, output, 0, 0, column};
  float window[1] = {sum + 0.0F};  // -0 becomes 0, however many zeros were added
  LastDraw last;
  const EpilogueResult result = run_epilogue<1>(args.epilogue, step, place, window, last);
  const std::size_t at = static_cast<std::size_t>(output) * args.shape.batch + column;
  args.y[at] = result.y;
  if (args.mask != nullptr) args.mask[at] = result.mask;
}

template <int kOutputs, int kSamples>
__global__ void __launch_bounds__(InputSlices::kMost* kLanes, 1) forward_kernel(ForwardArgs args) {
  using Tile = ForwardTile<kOutputs, kSamples>;
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const int output = blockIdx.x * kOutputs, first_column = blockIdx.y * kLanes * kSamples;
  const std::uint32_t step = args.state == nullptr ? 0 : args.state->step;
  const InputSlice slice = {warp * args.length, min((warp + 1) * args.length, args.shape.in_features)};

  int column[kSamples];  // those beyond the batch repeat the last one and are not stored
#pragma unroll
  for (int s = 0; s < kSamples; ++s) column[s] = min(first_column + s * kLanes + lane, args.shape.batch - 1);
  float sum[kOutputs][kSamples];
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
    const float bias = warp == 0 ? load_input(args.b + min(output + o, args.shape.out_features - 1)) : 0.0F;
#pragma unroll
    for (int s = 0; s < kSamples; ++s) sum[o][s] = bias;
  }
  float* weights = shared + warp * Tile::chunk_rows(args.length) * Tile::kStride;
  const EarlierSums<Tile::kElements> earlier(shared + Tile::front_floats(args.slices, args.length),
                                             threadIdx.x, args.slices * kLanes);
  sum_slice<kOutputs, kSamples>(args, slice, output, lane, column, weights, earlier, sum);

#pragma unroll
  for (int e = 0; e < Tile::kElements; ++e)
    shared[(warp * Tile::kElements + e) * kLanes + lane] = sum[e / kSamples][e % kSamples];
  __syncthreads();
  for (int e = warp; e < Tile::kElements; e += args.slices) {
    float total = shared[e * kLanes + lane];
    for (int s = 1; s < args.slices; ++s) total += shared[(s * Tile::kElements + e) * kLanes + lane];
    const int o = output + e / kSamples, n = first_column + e % kSamples * kLanes + lane;
    if (o < args.shape.out_features && n < args.shape.batch) finish(args, step, o, n, total);
  }
}

template <int kOutputs, int kSamples>
dim3 grid_of(const LinearShape& shape) {
  return dim3(static_cast<unsigned>(pieces(shape.out_features, kOutputs)),
              static_cast<unsigned>(pieces(shape.batch, kLanes * kSamples)));
}

template <int kOutputs, int kSamples>
void launch_forward(cudaStream_t stream, const ForwardArgs& args) {
  using Tile = ForwardTile<kOutputs, kSamples>;
  const int floats =
      Tile::front_floats(args.slices, args.length) + Tile::block_floats(args.slices, args.length);
  const LaunchShape shape = {grid_of<kOutputs, kSamples>(args.shape),
                             dim3(static_cast<unsigned>(args.slices * kLanes)),
                             static_cast<std::size_t>(floats) * sizeof(float)};
  launch(stream, shape, forward_kernel<kOutputs, kSamples>, args);
}

}  // namespace

void NativeOps::linear_forward(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                               const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                               std::uint8_t* mask) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.in_features >= 1 && shape.out_features >= 1 && epilogue.pool == 1);
  const InputSlices slices(shape.in_features);
  const ForwardArgs args = {shape, x, w, b, epilogue, state, y, mask, slices.count, slices.length};
  // The largest tile of which there is one for (almost) every multiprocessor. With the sums of blocks, that of 16
  // elements would need more shared memory than a T4 has.
  const bool has_blocks = slices.length > InputSlices::kBlock;
  if (!has_blocks && fills(grid_of<8, 2>(shape), chip_.multiprocessors)) {
    launch_forward<8, 2>(on(stream), args);
  } else if (fills(grid_of<8, 1>(shape), chip_.multiprocessors)) {
    launch_forward<8, 1>(on(stream), args);
  } else if (fills(grid_of<4, 1>(shape), chip_.multiprocessors)) {
    launch_forward<4, 1>(on(stream), args);
  } else {
    launch_forward<2, 1>(on(stream), args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
