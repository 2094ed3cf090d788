// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The last fully connected layer and the cross-entropy of what it gives, in one launch: the logits of a sample stay in
/// the registers of the four lanes that lose it, with the bits of linear_forward.cu and loss.cu.
///
/// A block has eight samples, and a warp a slice of their inputs. Its lanes lie as those of the loss: a lane has one
/// sample and every fourth class. So once the slices are added up, each lane of the first warp holds the logits that it
/// needs. What a block reads is on its way at once: the weights of a warp's slice, which go through shared memory, eight
/// of its inputs, bias and label.
///
/// Limits on an H100: Net at batch 64 is 8 blocks of 8 warps and 15 KB, LeNet at batch 256 32 blocks of 16 warps and
/// 0.3 MB from L2: nothing. What remains is a launch, one trip to L2, and what the loss takes behind it. Two kernels are
/// a launch and a trip to L2 more.
#include "common/error.hpp"
#include "kernels/cuda/loss_sample.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kInputsAtOnce = 8;               ///< of a slice, whose x a lane loads at once
constexpr int kMostOfSlice = kLanes;           ///< inputs: a lane loads the weights of one
constexpr int kWeightRow = kLogitsAtOnce + 4;  ///< of an input; as float4, eight lanes write without conflict

struct LinearLossArgs {
  LinearShape shape;
  const float *x, *w, *b;
  LossTarget target;
  float* dlogits;
  int slices;  ///< warps of a block
  int length;  ///< inputs of a slice; the last ones may be shorter or empty
};

/// Inputs of a slice in shared memory: whole groups of kInputsAtOnce.
__host__ __device__ constexpr int rows_of_slice(int length) {
  return tiles(length, kInputsAtOnce) * kInputsAtOnce;
}

/// The class at place `at` of an input's weights: the classes of a lane are neighbours.
__device__ inline int class_at(int at) {
  return at / kLogitsOfLane + at % kLogitsOfLane * kLossLanes;
}

/// The weights of input begin + lane, by place; 0 where there is none.
__device__ inline void load_weights(const LinearLossArgs& args, int begin, int end, int lane,
                                    float (&w)[kLogitsAtOnce]) {
  const float* const from = args.w + begin + lane;
#pragma unroll
  for (int at = 0; at < kLogitsAtOnce; ++at) {
    const bool is_there = begin + lane < end && class_at(at) < args.shape.out_features;
    w[at] =
        is_there ? load_input(from + static_cast<std::size_t>(class_at(at)) * args.shape.in_features) : 0.0F;
  }
}

__device__ inline void load_inputs(const LinearLossArgs& args, int i, int end, int n,
                                   float (&x)[kInputsAtOnce]) {
#pragma unroll
  for (int k = 0; k < kInputsAtOnce; ++k)
    x[k] = i + k < end ? load_input(args.x + static_cast<std::size_t>(i + k) * args.shape.batch + n) : 0.0F;
}

/// Adds the products of a warp's slice [begin, end) to the sums of a lane's classes. @param shared  of the warp
__device__ inline void add_slice(const LinearLossArgs& args, int begin, int end, int n, float* shared,
                                 float (&sum)[kLogitsOfLane]) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const float* const mine = shared + lane / kSamplesOfWarp * kLogitsOfLane;
  float w[kLogitsAtOnce], x[kInputsAtOnce];
  load_weights(args, begin, end, lane, w);
  load_inputs(args, begin, end, n, x);
  if (lane < rows_of_slice(args.length)) store_neighbours(w, shared + lane * kWeightRow);
  __syncwarp();
  for (int i = begin; i < end; i += kInputsAtOnce) {
#pragma unroll
    for (int k = 0; k < kInputsAtOnce; ++k) {
      float weights[kLogitsOfLane];
      load_neighbours(mine + (i - begin + k) * kWeightRow, weights);
#pragma unroll
      for (int c = 0; c < kLogitsOfLane; ++c) sum[c] = fmaf(weights[c], x[k], sum[c]);
    }
    load_inputs(args, i + kInputsAtOnce, end, n, x);
  }
}

/// The sums of all slices, in their order. @param partial  of the block's first warp, then of the next one
__device__ inline void add_up_slices(const float* partial, int slices, float (&sum)[kLogitsOfLane]) {
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k) sum[k] = partial[k * kLanes];
  for (int s = 1; s < slices; ++s) {
#pragma unroll
    for (int k = 0; k < kLogitsOfLane; ++k) sum[k] += partial[(s * kLogitsOfLane + k) * kLanes];
  }
}

__global__ void __launch_bounds__(InputSlices::kMost* kLanes, 1) linear_loss_kernel(LinearLossArgs args) {
  await_earlier_kernels();
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const int column = static_cast<int>(blockIdx.x) * kSamplesOfWarp + lane % kSamplesOfWarp;
  const int first = lane / kSamplesOfWarp, classes = min(args.shape.out_features, kLogitsAtOnce);
  const bool counts = column < args.shape.batch;
  const int n = counts ? column : args.shape.batch - 1;
  const int label = load_input(args.target.labels + n);
  const std::uint32_t stops = stops_of_block(args.target);
  float sum[kLogitsOfLane];
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k)
    sum[k] = warp == 0 ? load_input(args.b + min(first + k * kLossLanes, classes - 1)) : 0.0F;
  const int begin = warp * args.length, end = min(begin + args.length, args.shape.in_features);
  const int weight_floats = rows_of_slice(args.length) * kWeightRow;
  add_slice(args, begin, end, n, shared + warp * weight_floats, sum);

  float* const partial = shared + args.slices * weight_floats;
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k) partial[(warp * kLogitsOfLane + k) * kLanes + lane] = sum[k];
  __syncthreads();
  if (warp != 0) return;
  add_up_slices(partial + lane, args.slices, sum);
  LanePart part = {nullptr, static_cast<std::size_t>(args.shape.batch), classes, first, {}};
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k)  // -0 becomes 0, as in linear_forward.cu
    part.v[k] = first + k * kLossLanes < classes ? sum[k] + 0.0F : -INFINITY;
  SampleScore score =
      score_of(cross_entropy(part, label, counts ? args.dlogits + n : nullptr), args.target.narrow_limit);
  if (!counts) score = {};
  add_scores(args.target, args.shape.batch, stops, score);
}

}  // namespace

bool linear_forward_loss(cudaStream_t stream, const Chip& chip, const LinearShape& shape, const float* x,
                         const float* w, const float* b, const LossShape& loss, const LossTarget& target,
                         float* dlogits) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.in_features >= 1 && shape.out_features >= 1);
  LOCKSTEP_CHECK(loss.batch == shape.batch && loss.samples == shape.batch &&
                 loss.classes == shape.out_features);
  LOCKSTEP_CHECK(target.narrow_limit >= narrow_loss_limit(kMostLossTerms));
  const InputSlices slices(shape.in_features);
  const int blocks = tiles(shape.batch, kSamplesOfWarp);
  // Every block reads all weights: where blocks wait for each other, two launches are faster.
  if (!loss.is_plain() || shape.out_features > kLogitsAtOnce || slices.length > kMostOfSlice ||
      blocks > 2 * chip.multiprocessors)
    return false;
  const int floats = slices.count * (rows_of_slice(slices.length) * kWeightRow + kLogitsOfLane * kLanes);
  const LaunchShape launch_shape = {dim3(static_cast<unsigned>(blocks)),
                                    dim3(static_cast<unsigned>(slices.count * kLanes)),
                                    static_cast<std::size_t>(floats) * sizeof(float)};
  launch(stream, launch_shape, linear_loss_kernel,
         LinearLossArgs{shape, x, w, b, target, dlogits, slices.count, slices.length});
  return true;
}

}  // namespace lockstep::LOCKSTEP_GPU
