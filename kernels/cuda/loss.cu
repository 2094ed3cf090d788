// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cross-entropy of the softmax: loss, correct answers and the gradient, a thread for each sample.
///
/// Versions:
/// 1. Three loops over the classes, a load in each turn: 30 trips to L2 one after another.
/// 2. Sixteen logits are loaded at once, and come from L1 the second and third time; one division serves all
///    classes. No branch in exp: sixteen run side by side. A block is a warp: the batch spreads over more
///    multiprocessors, and its sums are one shuffle tree and two votes, without a barrier. This one.
///
/// Limits on an H100: Net at batch 64 moves 5 KB, LeNet at batch 256 20 KB: nothing. What remains is one trip
/// to L2, two exps and one log one after another: about a microsecond; one launch.
#include "kernels/cuda/exact_sum.cuh"
#include "kernels/cuda/exp_log.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/runtime/error.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kChunk = 16;  ///< logits of a sample in registers at once
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

struct LossArgs {
  int batch, classes;
  TensorLayout layout;
  const float* logits;
  LossTarget target;
  float* dlogits;
};

/// The logits of one sample.
struct Logits {
  const float* first;
  std::size_t stride;
  int count;
};

/// Logits [c, c + kChunk); minus infinity beyond the last one. Not __ldg: the gradient may be in place.
__device__ inline void load_chunk(const Logits& logits, int c, float (&v)[kChunk]) {
  const float* from = logits.first + static_cast<std::size_t>(c) * logits.stride;
#pragma unroll
  for (int k = 0; k < kChunk; ++k, from += logits.stride) v[k] = c + k < logits.count ? *from : -INFINITY;
}

struct Peak {
  float value;   ///< largest logit; NaN is no logit here, the sum of exps will show it
  int index;     ///< its class, the first among equals
  float target;  ///< logit of the label
};

__device__ inline Peak find_peak(const Logits& logits, int label) {
  Peak peak = {-INFINITY, 0, 0};
  for (int c = 0; c < logits.count; c += kChunk) {
    float v[kChunk];
    load_chunk(logits, c, v);
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      const bool greater = v[k] > peak.value;
      peak.value = greater ? v[k] : peak.value;
      peak.index = greater ? c + k : peak.index;
      peak.target = c + k == label ? v[k] : peak.target;
    }
  }
  return peak;
}

/// Of exp(logit - peak), over the classes in their order.
__device__ inline float sum_exp(const Logits& logits, float peak) {
  float sum = 0;
  for (int c = 0; c < logits.count; c += kChunk) {
    float v[kChunk];
    load_chunk(logits, c, v);
#pragma unroll
    for (int k = 0; k < kChunk; ++k) sum += exp_nonpositive(v[k] - peak);
  }
  return sum;
}

/// softmax - onehot, with the stride of the logits.
__device__ inline void store_gradient(const Logits& logits, float peak, float sum, int label, float* to) {
  const float scale = 1.0F / sum;
  for (int c = 0; c < logits.count; c += kChunk) {
    float v[kChunk];
    load_chunk(logits, c, v);
#pragma unroll
    for (int k = 0; k < kChunk; ++k, to += logits.stride) {
      const float softmax = exp_nonpositive(v[k] - peak) * scale;
      if (c + k < logits.count) *to = softmax - (c + k == label ? 1.0F : 0.0F);
    }
  }
}

struct Verdict {
  std::int64_t loss = 0;  ///< in units of 1 / kLossScale
  bool correct = false, refused = false;
};

__device__ inline Verdict judge_sample(const LossArgs& args, int n) {
  const std::size_t start = static_cast<std::size_t>(n) * args.layout.sample_stride;
  const Logits logits = {args.logits + start, args.layout.feature_stride, args.classes};
  const int label = args.target.labels[n];
  const Peak peak = find_peak(logits, label);
  const float sum = sum_exp(logits, peak.value);
  if (args.dlogits != nullptr) store_gradient(logits, peak.value, sum, label, args.dlogits + start);
  const float loss = log_from_one(sum) + (peak.value - peak.target);
  Verdict verdict;
  verdict.correct = peak.index == label && loss == loss;
  verdict.refused = !(fabsf(loss) < args.target.loss_limit);
  if (!verdict.refused) verdict.loss = __double2ll_rn(static_cast<double>(loss) * kLossScale);
  return verdict;
}

/// The sum over the warp, in its first lane.
__device__ inline std::int64_t sum_of_warp(std::int64_t term) {
  auto sum = static_cast<long long>(term);
#pragma unroll
  for (unsigned distance = kLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, distance);
  return sum;
}

__global__ void __launch_bounds__(kLanes) loss_kernel(LossArgs args) {
  const int n = static_cast<int>(blockIdx.x) * kLanes + static_cast<int>(threadIdx.x);
  const bool counts_stops = blockIdx.x == 0 && args.target.state != nullptr;
  const std::uint32_t stops = counts_stops ? args.target.state->stop_requested : 0;
  const Verdict verdict = n < args.batch ? judge_sample(args, n) : Verdict{};
  const std::int64_t loss = sum_of_warp(verdict.loss);
  const int correct = __popc(__ballot_sync(kAllLanes, verdict.correct));
  const int refused = __popc(__ballot_sync(kAllLanes, verdict.refused));
  if (threadIdx.x != 0) return;
  std::int64_t* const counters = args.target.counters;
  add_integer(counters + kLoss, loss);
  add_integer(counters + kCorrect, correct);
  if (refused > 0) add_integer(counters + kNotFinite, refused);
  if (blockIdx.x != 0) return;
  add_integer(counters + kSamples, args.batch);
  if (stops > 0) add_integer(counters + kStopRequests, stops);
}

}  // namespace

void softmax_cross_entropy(cudaStream_t stream, const LossShape& shape, TensorLayout layout,
                           const float* logits, const LossTarget& target, float* dlogits) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.classes >= 1 && shape.samples == shape.batch);
  const LossArgs args = {shape.batch, shape.classes, layout, logits, target, dlogits};
  launch(stream, {dim3(static_cast<unsigned>(tiles(shape.batch, kLanes))), dim3(kLanes)}, loss_kernel, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
