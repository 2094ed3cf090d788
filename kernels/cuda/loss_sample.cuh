// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss of a sample, computed by four lanes of a warp. A warp has eight samples and adds up their losses. For
/// loss.cu, and for linear_loss.cu, whose lanes have computed their logits themselves.
#pragma once

#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/sum_cuts.hpp"

#include <gpu/launch.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kLossLanes = kLossSums;                      ///< lanes that share a sample
inline constexpr int kSamplesOfWarp = kLanes / kLossLanes;        ///< lane = part * kSamplesOfWarp + sample
inline constexpr int kLogitsOfLane = 4;                           ///< in registers at once
inline constexpr int kLogitsAtOnce = kLossLanes * kLogitsOfLane;  ///< a sample's in registers at once
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;
inline constexpr unsigned kOneSample = 0x01010101U;  ///< the lanes of sample 0
static_assert(kSamplesOfWarp == 8 && kLossLanes == 4);

/// A lane's part of a sample: every kLossLanes-th class. All of it is in registers.
struct LaneLogits {
  std::size_t stride;  ///< from a class to the next one, of the gradient
  int classes, first;
  float v[kLogitsOfLane];  ///< minus infinity beyond the last class

  /// Calls f(class, logit), in the order of the classes; minus infinity beyond the last one.
  template <typename F>
  __device__ void for_each(const F& f) const {
#pragma unroll
    for (int k = 0; k < kLogitsOfLane; ++k) f(first + k * kLossLanes, v[k]);
  }
};

/// A part with any number of classes; the first ones stay in registers. Not __ldg: the gradient may be in place.
struct LanePart : LaneLogits {
  const float* logits;  ///< the sample's

  __device__ void load(int from, float (&to)[kLogitsOfLane]) const {
#pragma unroll
    for (int k = 0; k < kLogitsOfLane; ++k) {
      const int c = from + k * kLossLanes;
      to[k] = c < classes ? logits[static_cast<std::size_t>(c) * stride] : -INFINITY;
    }
  }

  template <typename F>
  __device__ void for_each(const F& f) const {
    LaneLogits::for_each(f);
    for (int from = first + kLogitsAtOnce; from < classes; from += kLogitsAtOnce) {
      float more[kLogitsOfLane];
      load(from, more);
#pragma unroll
      for (int k = 0; k < kLogitsOfLane; ++k) f(from + k * kLossLanes, more[k]);
    }
  }
};

// Functions of a Part, which is either.

/// The largest logit of the sample; NaN is none here, the sum of exps will show it.
template <typename Part>
__device__ inline float find_peak(const Part& part) {
  float peak = -INFINITY;
  part.for_each([&](int, float v) { peak = fmaxf(peak, v); });
#pragma unroll
  for (int distance = kSamplesOfWarp; distance < kLanes; distance *= 2)
    peak = fmaxf(peak, __shfl_xor_sync(kAllLanes, peak, distance));
  return peak;
}

/// Sum over the lanes of a sample. Each pair of lanes adds the same two numbers, so all lanes hold the same bits.
__device__ inline float sum_of_lanes(float sum) {
#pragma unroll
  for (int distance = kSamplesOfWarp; distance < kLanes; distance *= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  return sum;
}

/// Sum of exp(logit - peak) over the sample. Each lane adds its classes in their order.
template <typename Part>
__device__ inline float sum_exp(const Part& part, float peak) {
  float sum = 0;
  part.for_each([&](int, float v) { sum += exp_of_loss<ScalarMath>(v - peak); });
  return sum_of_lanes(sum);
}

/// softmax - onehot, with the stride of the logits.
template <typename Part>
__device__ inline void store_gradient(const Part& part, float peak, float sum, int label, float* to) {
  const float scale = 1.0F / sum;
  part.for_each([&](int c, float v) {
    const float softmax = exp_of_loss<ScalarMath>(v - peak) * scale;
    if (c < part.classes)
      to[static_cast<std::size_t>(c) * part.stride] = softmax - (c == label ? 1.0F : 0.0F);
  });
}

struct Answer {
  float logit;      ///< the label's
  bool is_largest;  ///< and the first of the largest ones
};

template <typename Part>
__device__ inline Answer find_answer(const Part& part, float peak, int label) {
  float logit = 0;
  int first = label;  // the first of the largest, if it comes before
  part.for_each([&](int c, float v) {
    logit = c == label ? v : logit;
    first = min(first, v == peak ? c : label);
  });
  const int sample = static_cast<int>(threadIdx.x) % kSamplesOfWarp;
  logit = __shfl_sync(kAllLanes, logit,
                      static_cast<int>(static_cast<unsigned>(label) % kLossLanes) * kSamplesOfWarp + sample);
  const unsigned lanes = __ballot_sync(kAllLanes, first < label) >> sample & kOneSample;
  return {logit, lanes == 0 && logit == peak};
}

struct SampleLoss {
  float loss;
  bool is_largest;  ///< the label's logit; of several labels: the answer is the sample's labels
};

/// The cross-entropy without smoothing, weights and second labels.
/// @param to  for the gradient; null: this lane stores none
template <typename Part>
__device__ inline SampleLoss cross_entropy(const Part& part, int label, float* to) {
  const float peak = find_peak(part);
  const float sum = sum_exp(part, peak);
  const Answer answer = find_answer(part, peak, label);
  if (to != nullptr) store_gradient(part, peak, sum, label, to);
  return {log_of_loss<ScalarMath>(sum) + (peak - answer.logit), answer.is_largest};
}

// Scores: a warp adds its samples to the counters of the step.

/// The score of a sample, equal in all its lanes.
struct SampleScore {
  std::int64_t loss = 0;  ///< in units of 1 / kLossScale; 0 if it is too large for that
  float wide_loss = 0;    ///< it then
  bool correct = false, refused = false;
};

/// Adds a finite loss of at least 2^31 units to the limbs of the loss: its 24 bits touch two. Only
/// where the network went astray, so that it costs nothing elsewhere.
__device__ inline void add_wide_loss(std::int64_t* counters, float loss) {
  const unsigned bits = __float_as_uint(loss);
  const int lowest = static_cast<int>((bits >> 23) & 0xFFU) - 127 - 23 + 32;  // bit of the sum
  const auto digits = static_cast<std::int64_t>((bits & 0x7FFFFFU) | 0x800000U) << lowest % kWideLimbBits;
  const std::int64_t sign = loss < 0 ? -1 : 1;
  const int limb = lowest / kWideLimbBits;
  add_integer(counters + kLoss + limb, sign * (digits & 0xFFFFFFFFLL));
  add_integer(counters + kLoss + limb + 1, sign * (digits >> kWideLimbBits));
}

/// @param narrow_limit  LossTarget's
__device__ inline SampleScore score_of(const SampleLoss& sample, double narrow_limit) {
  const auto [loss, is_largest] = sample;
  SampleScore score;
  score.correct = is_largest && loss == loss;  // NOLINT(misc-redundant-expression): a NaN equals nothing
  const bool narrow = fabsf(loss) < narrow_limit;
  if (narrow) score.loss = __double2ll_rn(static_cast<double>(loss) * kLossScale);
  score.refused = !(fabsf(loss) < INFINITY);
  if (!narrow && !score.refused) score.wide_loss = loss;
  return score;
}

/// Over the samples of the warp, in its first lane.
__device__ inline std::int64_t sum_of_samples(std::int64_t term) {
  auto sum = static_cast<long long>(term);
#pragma unroll
  for (unsigned distance = kSamplesOfWarp / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, distance);
  return sum;
}

/// How many samples of the warp.
__device__ inline int count_samples(bool which) {
  return __popc(__ballot_sync(kAllLanes, which) & ((1U << kSamplesOfWarp) - 1));
}

/// By a whole warp, one of each block; the first block adds what the batch has once.
/// @param stops  wishes to stop, in the first lane of the first block
__device__ inline void add_scores(const LossTarget& target, int batch, std::uint32_t stops,
                                  const SampleScore& score) {
  if (score.wide_loss != 0 && threadIdx.x < kSamplesOfWarp) add_wide_loss(target.counters, score.wide_loss);
  const std::int64_t loss = sum_of_samples(score.loss);
  const int correct = count_samples(score.correct);
  const int refused = count_samples(score.refused);
  if (threadIdx.x != 0) return;
  std::int64_t* const counters = target.counters;
  add_integer(counters + kLoss, loss);
  add_integer(counters + kCorrect, correct);
  if (refused > 0) add_integer(counters + kRefused, refused);
  if (blockIdx.x != 0) return;
  add_integer(counters + kSamples, batch);
  if (stops > 0) add_integer(counters + kStopRequests, stops);
}

/// The `stops` of add_scores(), read early.
__device__ inline std::uint32_t stops_of_block(const LossTarget& target) {
  return blockIdx.x == 0 && target.state != nullptr ? target.state->stop_requested : 0;
}

}  // namespace lockstep::LOCKSTEP_GPU
