// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The last fully connected layer, the cross-entropy of its output and the gradient of its input, in one launch. The
/// logits of a sample stay in the registers of the four lanes that find its loss. The bits are those of
/// linear_forward.cu, loss.cu and linear_backward_data.cu.
///
/// A block has eight samples, and a warp a slice of their inputs. Its lanes are laid out like those of the loss: a lane
/// has one sample and every fourth class. So once the slices are added up, each lane of the first warp holds the logits
/// that it needs. The gradient of the logits goes back to all warps through shared memory; they have the weights of
/// their slices, and a lane now has every fourth input. All that a block reads is on its way at once: weights, the
/// first eight inputs, bias, label and the mask.
///
/// Limits on an H100. Net at batch 64 is 8 blocks of 8 warps and 30 KB, LeNet at batch 256 32 blocks of 16 warps and
/// 0.4 MB from L2: nothing. A launch remains, one trip to L2, and the time of the loss after it. Three kernels
/// are two launches and two trips more.
#include "common/error.hpp"
#include "kernels/cuda/loss_sample.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kInputsAtOnce = 8;                                 ///< a slice's, whose x a lane loads at once
constexpr int kMostOfSlice = kLanes;                             ///< inputs: a lane loads the weights of one
constexpr int kGradientFloats = kLogitsAtOnce * kSamplesOfWarp;  ///< for the logits of a block
constexpr int kWeightRow = kLogitsAtOnce + 4;  ///< an input's; as float4, eight lanes write without conflict

struct LinearLossArgs {
  LinearShape shape;
  const float *x, *w, *b;
  LossTarget target;
  float* dlogits;
  EpilogueBackward expand;  ///< without a mask: there is none
  float* dx;                ///< null: not wanted
  int slices;               ///< warps of a block
  int length;               ///< inputs of a slice; the last ones may be shorter or empty
};

/// Inputs of a slice in shared memory: whole groups of kInputsAtOnce.
__host__ __device__ constexpr int rows_of_slice(int length) {
  return pieces(length, kInputsAtOnce) * kInputsAtOnce;
}

/// Place of the weight of a class among those of an input: the classes of a lane are neighbours.
__host__ __device__ constexpr int place_of(int c) {
  return c % kLossLanes * kLogitsOfLane + c / kLossLanes;
}

/// The weights of input begin + lane, by place; 0 where there is none.
__device__ inline void load_weights(const LinearLossArgs& args, int begin, int end, int lane,
                                    float (&w)[kLogitsAtOnce]) {
  const float* const from = args.w + begin + lane;
#pragma unroll
  for (int c = 0; c < kLogitsAtOnce; ++c) {
    const bool is_there = begin + lane < end && c < args.shape.out_features;
    w[place_of(c)] =
        is_there ? load_input(from + static_cast<std::size_t>(c) * args.shape.in_features) : 0.0F;
  }
}

__device__ inline void load_inputs(const LinearLossArgs& args, int i, int end, int n,
                                   float (&x)[kInputsAtOnce]) {
#pragma unroll
  for (int k = 0; k < kInputsAtOnce; ++k)
    x[k] = i + k < end ? load_input(args.x + static_cast<std::size_t>(i + k) * args.shape.batch + n) : 0.0F;
}

/// Adds the products of a warp's slice [begin, end) to the sums of a lane's classes. @param shared  the warp's
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
    if (i + kInputsAtOnce < end) load_inputs(args, i + kInputsAtOnce, end, n, x);
  }
}

/// The sums of all slices, in their order. @param partial  that of the block's first warp, then of the next one
__device__ inline void add_up_slices(const float* partial, int slices, float (&sum)[kLogitsOfLane]) {
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k) sum[k] = partial[k * kLanes];
  for (int s = 1; s < slices; ++s) {
#pragma unroll
    for (int k = 0; k < kLogitsOfLane; ++k) sum[k] += partial[(s * kLogitsOfLane + k) * kLanes];
  }
}

/// For the first warp: its samples' loss. The gradient of their logits goes to shared memory,
/// [kLogitsAtOnce][kSamplesOfWarp], 0 beyond the last class.
__device__ inline SampleScore score_logits(const LinearLossArgs& args, const float* partial, int label,
                                           float* dlogits) {
  const int lane = static_cast<int>(threadIdx.x), part = lane / kSamplesOfWarp;
  const int classes = args.shape.out_features;
  float* const mine = dlogits + lane % kSamplesOfWarp;
  float sum[kLogitsOfLane];
  add_up_slices(partial + lane, args.slices, sum);
  LaneLogits logits = {kSamplesOfWarp, classes, part, {}};
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k) {
    const int c = part + k * kLossLanes;
    logits.v[k] = c < classes ? sum[k] + 0.0F : -INFINITY;  // -0 becomes 0, as in linear_forward.cu
    if (c >= classes) mine[c * kSamplesOfWarp] = 0;
  }
  return score_of(cross_entropy(logits, label, mine), args.target.narrow_limit);
}

/// Bits of inputs begin + part, begin + part + kLossLanes, ... of a sample. Set if they pass the epilogue before.
__device__ inline unsigned load_passes(const LinearLossArgs& args, int begin, int end, int n) {
  if (args.expand.mask == nullptr) return ~0U;
  unsigned passes = 0;
#pragma unroll
  for (int j = 0; j < kMostOfSlice / kLossLanes; ++j) {
    const int i = begin + j * kLossLanes;
    if (i < end)
      passes |= (load_input(args.expand.mask + static_cast<std::size_t>(i) * args.shape.batch + n) & 1U) << j;
  }
  return passes;
}

/// The gradients of these inputs. @param w  weights of the first of them @param dlogits  the block's, of this sample
__device__ inline void store_data_gradient(const LinearLossArgs& args, int begin, int end, int n,
                                           const float* w, const float* dlogits, unsigned passes) {
  float dy[kLogitsAtOnce];
#pragma unroll
  for (int c = 0; c < kLogitsAtOnce; ++c) dy[c] = dlogits[c * kSamplesOfWarp];
#pragma unroll 1  // two turns in Net and LeNet
  for (int i = begin; i < end; i += kLossLanes, w += kLossLanes * kWeightRow, passes >>= 1) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kLogitsAtOnce; ++c) sum = fmaf(w[place_of(c)], dy[c], sum);
    sum += 0.0F;  // -0 becomes 0, as in linear_backward_data.cu
    const float gradient = args.expand.mask == nullptr ? sum : args.expand.factors.times(sum);
    args.dx[static_cast<std::size_t>(i) * args.shape.batch + n] = (passes & 1U) != 0 ? gradient : 0.0F;
  }
}

__global__ void __launch_bounds__(InputSlices::kMost* kLanes, 1) linear_loss_kernel(LinearLossArgs args) {
  LOCKSTEP_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const int part = lane / kSamplesOfWarp, sample = lane % kSamplesOfWarp;
  const int first_column = static_cast<int>(blockIdx.x) * kSamplesOfWarp, column = first_column + sample;
  const int classes = args.shape.out_features;
  const bool counts = column < args.shape.batch;
  const int n = counts ? column : args.shape.batch - 1;
  const int begin = warp * args.length, end = min(begin + args.length, args.shape.in_features);
  const int label = load_input(args.target.labels + n);
  const std::uint32_t stops = stops_of_block(args.target);
  const unsigned passes = args.dx == nullptr ? 0 : load_passes(args, begin + part, end, n);
  float sum[kLogitsOfLane];
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k)
    sum[k] = warp == 0 ? load_input(args.b + min(part + k * kLossLanes, classes - 1)) : 0.0F;
  float* const dlogits = shared;
  const int weight_floats = rows_of_slice(args.length) * kWeightRow;
  float* const weights = dlogits + kGradientFloats + warp * weight_floats;
  add_slice(args, begin, end, n, weights, sum);

  float* const partial = dlogits + kGradientFloats + args.slices * weight_floats;
#pragma unroll
  for (int k = 0; k < kLogitsOfLane; ++k) partial[(warp * kLogitsOfLane + k) * kLanes + lane] = sum[k];
  __syncthreads();
  SampleScore score;
  if (warp == 0) score = score_logits(args, partial, label, dlogits);
  if (!counts) score = {};
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < classes * kSamplesOfWarp;
       i += static_cast<int>(blockDim.x)) {
    if (counts)
      args.dlogits[static_cast<std::size_t>(i / kSamplesOfWarp) * args.shape.batch + column] = dlogits[i];
  }
  if (args.dx != nullptr && counts)
    store_data_gradient(args, begin + part, end, n, weights + part * kWeightRow, dlogits + sample, passes);
  if (warp == 0) add_scores(args.target, args.shape.batch, stops, score);
}

}  // namespace

bool NativeOps::linear_loss(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                            const float* b, const LossShape& loss, const LossTarget& target, float* dlogits,
                            const EpilogueBackward* expand, float* dx) {
  if (!batch_innermost()) return false;
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.in_features >= 1 && shape.out_features >= 1);
  LOCKSTEP_CHECK(loss.batch == shape.batch && loss.samples == shape.batch &&
                 loss.classes == shape.out_features);
  LOCKSTEP_CHECK(target.narrow_limit >= narrow_loss_limit(kMostLossTerms));
  LOCKSTEP_CHECK(expand == nullptr || expand->pool == 1);
  const InputSlices slices(shape.in_features);
  const int blocks = pieces(shape.batch, kSamplesOfWarp);
  // Every block reads all weights: where blocks wait for each other, separate launches are faster.
  if (!loss.is_plain() || shape.out_features > kLogitsAtOnce || slices.length > kMostOfSlice ||
      blocks > 2 * chip_.multiprocessors)
    return false;
  const int floats =
      kGradientFloats + slices.count * (rows_of_slice(slices.length) * kWeightRow + kLogitsOfLane * kLanes);
  const EpilogueBackward before = expand == nullptr ? EpilogueBackward{} : *expand;
  const LinearLossArgs args = {shape, x, w, b, target, dlogits, before, dx, slices.count, slices.length};
  launch(on(stream),
         {dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(slices.count * kLanes)),
          static_cast<std::size_t>(floats) * sizeof(float)},
         linear_loss_kernel, args);
  return true;
}

}  // namespace lockstep::LOCKSTEP_GPU
