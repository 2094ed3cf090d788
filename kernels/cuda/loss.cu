// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Losses: loss, correct answers and the gradient, four lanes for each sample. The cross-entropy of the softmax is a
/// kernel without what smoothed targets, weights and other losses ask for.
///
/// Versions:
/// 1. Three loops over the classes, a load in each turn: 30 trips to L2 one after another.
/// 2. Sixteen logits are loaded at once, and come from L1 the second and third time; one division serves all
///    classes. No branch in exp: sixteen run side by side. A block is a warp: the batch spreads over more
///    multiprocessors, and its sums are one shuffle tree and two votes, without a barrier.
/// 3. Four lanes a sample, joined by two shuffles for the peak and two for the sum. A lane has four logits of
///    sixteen: they stay in registers, so does each exp for the gradient, and four run side by side. (In
///    version 2 the compiler computed them again, one after another between the stores.) Ten classes take a
///    third of the instructions of version 2, about 450, and a batch of 64 eight warps instead of two. Two
///    lanes would save a shuffle and double the exps, eight the reverse. This one.
///
/// Limits on an H100: Net at batch 64 moves 5 KB, LeNet at batch 256 20 KB: nothing. What remains is one trip
/// to L2, one exp and one log one after another, and the shuffles: about 0.6 us by its instructions; one
/// launch.
#include "common/error.hpp"
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/linear_tile.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/sum_cuts.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kParts = kLossSums;          ///< lanes that share a sample
constexpr int kPerWarp = kLanes / kParts;  ///< of a warp; lane = part * kPerWarp + sample
constexpr int kPerLane = 4;                ///< logits of a lane in registers at once
constexpr int kChunk = kParts * kPerLane;  ///< logits of a sample in registers at once
constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr unsigned kOneSample = 0x01010101U;  ///< the lanes of sample 0
static_assert(kPerWarp == 8 && kParts == 4);

/// What a kernel is compiled for.
enum class Form { kPlain, kCrossEntropy, kMixed, kMeanSquares, kBinaryCrossEntropy, kLabelSets };

struct LossArgs {
  int batch, classes;
  TensorLayout layout;
  const float* logits;
  LossTarget target;
  float* dlogits;
  LossRule rule;
  float weight_sum;
  const MixedLabel* mixed;
};

/// A lane's part of a sample: every kParts-th class. Not __ldg: the gradient may be in place.
struct LanePart {
  const float* logits;  ///< of the sample
  std::size_t stride;
  int classes, first;
  float v[kPerLane];  ///< the first ones, which stay in registers

  __device__ void load(int from, float (&to)[kPerLane]) const {
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      const int c = from + k * kParts;
      to[k] = c < classes ? logits[static_cast<std::size_t>(c) * stride] : -INFINITY;
    }
  }

  /// Calls f(class, logit), in the order of the classes; minus infinity beyond the last one.
  template <typename F>
  __device__ void for_each(const F& f) const {
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) f(first + k * kParts, v[k]);
    for (int from = first + kChunk; from < classes; from += kChunk) {
      float more[kPerLane];
      load(from, more);
#pragma unroll
      for (int k = 0; k < kPerLane; ++k) f(from + k * kParts, more[k]);
    }
  }
};

/// The largest logit of the sample; NaN is none here, the sum of exps will show it.
__device__ inline float find_peak(const LanePart& part) {
  float peak = -INFINITY;
  part.for_each([&](int, float v) { peak = fmaxf(peak, v); });
#pragma unroll
  for (int distance = kPerWarp; distance < kLanes; distance *= 2)
    peak = fmaxf(peak, __shfl_xor_sync(kAllLanes, peak, distance));
  return peak;
}

/// Over the lanes of a sample: each pair of lanes adds the same two numbers, so all lanes hold the same bits.
__device__ inline float sum_of_lanes(float sum) {
#pragma unroll
  for (int distance = kPerWarp; distance < kLanes; distance *= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  return sum;
}

/// Of exp(logit - peak) over the sample. Each lane adds its classes in their order.
__device__ inline float sum_exp(const LanePart& part, float peak) {
  float sum = 0;
  part.for_each([&](int, float v) { sum += exp_nonpositive(v - peak); });
  return sum_of_lanes(sum);
}

/// softmax - onehot, with the stride of the logits.
__device__ inline void store_gradient(const LanePart& part, float peak, float sum, int label, float* to) {
  const float scale = 1.0F / sum;
  part.for_each([&](int c, float v) {
    const float softmax = exp_nonpositive(v - peak) * scale;
    if (c < part.classes)
      to[static_cast<std::size_t>(c) * part.stride] = softmax - (c == label ? 1.0F : 0.0F);
  });
}

/// The logit of a label, in all lanes of the sample.
__device__ inline float logit_of(const LanePart& part, int label) {
  float logit = 0;
  part.for_each([&](int c, float v) { logit = c == label ? v : logit; });
  const int sample = static_cast<int>(threadIdx.x) % kPerWarp;
  return __shfl_sync(kAllLanes, logit,
                     static_cast<int>(static_cast<unsigned>(label) % kParts) * kPerWarp + sample);
}

struct Answer {
  float logit;      ///< of the label
  bool is_largest;  ///< and the first of the largest ones
};

__device__ inline Answer find_answer(const LanePart& part, float peak, int label) {
  float logit = 0;
  int first = label;  // the first of the largest, if it comes before
  part.for_each([&](int c, float v) {
    logit = c == label ? v : logit;
    first = min(first, v == peak ? c : label);
  });
  const int sample = static_cast<int>(threadIdx.x) % kPerWarp;
  logit = __shfl_sync(kAllLanes, logit,
                      static_cast<int>(static_cast<unsigned>(label) % kParts) * kPerWarp + sample);
  const unsigned lanes = __ballot_sync(kAllLanes, first < label) >> sample & kOneSample;
  return {logit, lanes == 0 && logit == peak};
}

/// Cross-entropy of smoothed targets, with weights of classes, or of two labels, as kernels/cpu/loss.cpp.
template <bool kMixed>
struct WeightedTarget {
  LossRule rule;
  float weight_sum, own;  ///< `own`: what the label's class has beyond rule.spread
  int second;             ///< the other label
  float second_own;

  __device__ static float weight_of(const LossRule& rule, int c) {
    return rule.class_weights == nullptr ? 1.0F : rule.class_weights[c];
  }
  __device__ WeightedTarget(const LossArgs& args, int n, int label)
      : rule(args.rule), weight_sum(args.weight_sum), second(label), second_own(0) {
    float share = rule.label_share;
    if constexpr (kMixed) {
      const MixedLabel mixed = args.mixed[n];
      second = mixed.label;
      second_own = rule.label_share * mixed.share * weight_of(rule, second);
      share = rule.label_share * (1.0F - mixed.share);
    }
    own = share * weight_of(rule, label);
    const StepState* const state = args.target.state;
    if (rule.class_weights != nullptr && state != nullptr) rule.scale = state->loss_scales[state->steps_done];
  }

  __device__ float loss(const LanePart& part, float peak, float logit, float sum) const {
    const float log_sum = log_from_one(sum);
    float of_label = own * (log_sum + (peak - logit));
    if constexpr (kMixed) {
      const float other = logit_of(part, second);
      of_label += second_own * (log_sum + (peak - other));
    }
    if (rule.spread > 0) {
      float distances = 0;
      part.for_each([&](int c, float v) {
        if (c < part.classes) distances += weight_of(rule, c) * (peak - v);
      });
      of_label += rule.spread * (sum_of_lanes(distances) + log_sum * weight_sum);
    }
    return of_label * rule.scale;
  }

  __device__ void store_gradient(const LanePart& part, float peak, float sum, int label, float* to) const {
    const float scale = 1.0F / sum;
    const float all = (kMixed ? own + second_own : own) + rule.spread * weight_sum;
    part.for_each([&](int c, float v) {
      if (c >= part.classes) return;
      const float softmax = exp_nonpositive(v - peak) * scale, spread = rule.spread * weight_of(rule, c);
      float target = c == label ? own + spread : spread;
      if constexpr (kMixed) target = c == second ? second_own + target : target;
      to[static_cast<std::size_t>(c) * part.stride] = (softmax * all - target) * rule.scale;
    });
  }
};

struct OutputsLoss {
  float loss;
  bool are_labels;  ///< of kLabelSets: the outputs above 0 are those of the sample's labels
};

/// The losses of single outputs: their mean over the classes. @param to  for the gradient; null: not wanted
template <Form kForm>
__device__ inline OutputsLoss mean_over_outputs(const LanePart& part, const LossRule& rule, int label,
                                                float* to) {
  const float share = 1.0F / static_cast<float>(part.classes), at_label = rule.label_share + rule.spread;
  const std::uint8_t* row = rule.label_sets;
  if constexpr (kForm == Form::kLabelSets)
    row += static_cast<std::size_t>(label) * static_cast<std::size_t>(part.classes);
  float sum = 0;
  bool differs = false;
  part.for_each([&](int c, float v) {
    if (c >= part.classes) return;
    float target = c == label ? at_label : rule.spread;
    if constexpr (kForm == Form::kLabelSets) {
      target = static_cast<float>(row[c]);
      differs = differs || (v > 0) != (row[c] != 0);
    }
    const auto of_output = kForm == Form::kMeanSquares ? squared_error<ScalarMath>(v, target)
                                                       : binary_cross_entropy<ScalarMath>(v, target);
    sum += of_output.loss;
    if (to != nullptr) to[static_cast<std::size_t>(c) * part.stride] = of_output.slope * share;
  });
  const float loss = sum_of_lanes(sum) * share;
  if constexpr (kForm != Form::kLabelSets) return {loss, false};
  const int sample = static_cast<int>(threadIdx.x) % kPerWarp;
  return {loss, (__ballot_sync(kAllLanes, differs) >> sample & kOneSample) == 0};
}

struct SampleScore {
  std::int64_t loss = 0;  ///< in units of 1 / kLossScale; 0 if it is too large for that
  float wide_loss = 0;    ///< it then
  bool correct = false, refused = false;
};

/// Adds a finite loss of at least 2^31 units to the limbs of the loss, of which its 24 bits touch two. Only
/// where the network went astray, so that it costs nothing elsewhere.
__device__ void add_wide_loss(std::int64_t* counters, float loss) {
  const unsigned bits = __float_as_uint(loss);
  const int lowest = static_cast<int>((bits >> 23) & 0xFFU) - 127 - 23 + 32;  // bit of the sum
  const auto digits = static_cast<std::int64_t>((bits & 0x7FFFFFU) | 0x800000U) << lowest % kWideLimbBits;
  const std::int64_t sign = loss < 0 ? -1 : 1;
  const int limb = lowest / kWideLimbBits;
  add_integer(counters + kLoss + limb, sign * (digits & 0xFFFFFFFFLL));
  add_integer(counters + kLoss + limb + 1, sign * (digits >> kWideLimbBits));
}

struct SampleLoss {
  float loss;
  bool is_largest;  ///< the label's logit; of kLabelSets: the answer is the sample's labels
};

/// @param to  for the gradient; null: this lane stores none
template <Form kForm>
__device__ inline SampleLoss loss_of_sample(const LossArgs& args, const LanePart& part, int n, int label,
                                            float* to) {
  if constexpr (kForm == Form::kLabelSets) {
    const OutputsLoss of_outputs = mean_over_outputs<kForm>(part, args.rule, label, to);
    return {of_outputs.loss, of_outputs.are_labels};
  }
  const float peak = find_peak(part);
  if constexpr (kForm == Form::kMeanSquares || kForm == Form::kBinaryCrossEntropy) {
    const Answer answer = find_answer(part, peak, label);
    return {mean_over_outputs<kForm>(part, args.rule, label, to).loss, answer.is_largest};
  } else {
    const float sum = sum_exp(part, peak);
    const Answer answer = find_answer(part, peak, label);
    if constexpr (kForm == Form::kPlain) {
      if (to != nullptr) store_gradient(part, peak, sum, label, to);
      return {log_from_one(sum) + (peak - answer.logit), answer.is_largest};
    } else {
      const WeightedTarget<kForm == Form::kMixed> target(args, n, label);
      const float loss = target.loss(part, peak, answer.logit, sum);
      if (to != nullptr) target.store_gradient(part, peak, sum, label, to);
      return {loss, answer.is_largest};
    }
  }
}

/// Of sample n, the same in all of its lanes. They compute together, so `n` is one of the batch in every
/// lane; `counts` tells whether it is this lane's to store.
template <Form kForm>
__device__ inline SampleScore score_sample(const LossArgs& args, int n, bool counts) {
  const std::size_t start = static_cast<std::size_t>(n) * args.layout.sample_stride;
  LanePart part = {args.logits + start,
                   args.layout.feature_stride,
                   args.classes,
                   static_cast<int>(threadIdx.x) / kPerWarp,
                   {}};
  part.load(part.first, part.v);
  const auto [loss, is_largest] =
      loss_of_sample<kForm>(args, part, n, args.target.labels[n],
                            args.dlogits != nullptr && counts ? args.dlogits + start : nullptr);
  SampleScore score;
  score.correct = is_largest && loss == loss;  // NOLINT(misc-redundant-expression): a NaN equals nothing
  const bool narrow = fabsf(loss) < args.target.narrow_limit;
  if (narrow) score.loss = __double2ll_rn(static_cast<double>(loss) * kLossScale);
  score.refused = !(fabsf(loss) < INFINITY);
  if (!narrow && !score.refused) score.wide_loss = loss;
  return score;
}

/// Over the samples of the warp, in its first lane.
__device__ inline std::int64_t sum_of_samples(std::int64_t term) {
  auto sum = static_cast<long long>(term);
#pragma unroll
  for (unsigned distance = kPerWarp / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, distance);
  return sum;
}

/// How many samples of the warp.
__device__ inline int count_samples(bool which) {
  return __popc(__ballot_sync(kAllLanes, which) & ((1U << kPerWarp) - 1));
}

template <Form kForm>
__global__ void __launch_bounds__(kLanes) loss_kernel(LossArgs args) {
  await_earlier_kernels();
  const int n = static_cast<int>(blockIdx.x) * kPerWarp + static_cast<int>(threadIdx.x) % kPerWarp;
  const bool counts_stops = blockIdx.x == 0 && args.target.state != nullptr;
  const std::uint32_t stops = counts_stops ? args.target.state->stop_requested : 0;
  const bool counts = n < args.batch;
  SampleScore score = score_sample<kForm>(args, counts ? n : args.batch - 1, counts);
  if (!counts) score = {};
  if (score.wide_loss != 0 && threadIdx.x < kPerWarp) add_wide_loss(args.target.counters, score.wide_loss);
  const std::int64_t loss = sum_of_samples(score.loss);
  const int correct = count_samples(score.correct);
  const int refused = count_samples(score.refused);
  if (threadIdx.x != 0) return;
  std::int64_t* const counters = args.target.counters;
  add_integer(counters + kLoss, loss);
  add_integer(counters + kCorrect, correct);
  if (refused > 0) add_integer(counters + kRefused, refused);
  if (blockIdx.x != 0) return;
  add_integer(counters + kSamples, args.batch);
  if (stops > 0) add_integer(counters + kStopRequests, stops);
}

void (*kernel_for(const LossShape& shape))(LossArgs) {
  switch (shape.rule.kind) {
    case LossKind::kMeanSquares:
      return loss_kernel<Form::kMeanSquares>;
    case LossKind::kBinaryCrossEntropy:
      if (shape.rule.label_sets != nullptr) return loss_kernel<Form::kLabelSets>;
      return loss_kernel<Form::kBinaryCrossEntropy>;
    case LossKind::kCrossEntropy:
      break;
  }
  if (shape.mixed != nullptr) return loss_kernel<Form::kMixed>;
  return shape.is_plain() ? loss_kernel<Form::kPlain> : loss_kernel<Form::kCrossEntropy>;
}

}  // namespace

void loss_and_gradient(cudaStream_t stream, const LossShape& shape, TensorLayout layout, const float* logits,
                       const LossTarget& target, float* dlogits) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.classes >= 1 && shape.samples == shape.batch);
  LOCKSTEP_CHECK(target.narrow_limit >= narrow_loss_limit(kMostLossTerms));
  const LossArgs args = {shape.batch, shape.classes,      layout,     logits, target, dlogits,
                         shape.rule,  shape.weight_sum(), shape.mixed};
  const dim3 blocks(static_cast<unsigned>(tiles(shape.batch, kPerWarp)));
  launch(stream, {blocks, dim3(kLanes)}, kernel_for(shape), args);
}

}  // namespace lockstep::LOCKSTEP_GPU
