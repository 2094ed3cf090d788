// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Losses: loss, correct answers and the gradient, four lanes for each sample. The cross-entropy of the softmax is a
/// kernel without what smoothed targets, weights and other losses need; after a small fully connected layer it is a
/// part of that one's kernel (linear_loss.cu).
///
/// Versions:
/// 1. Three loops over the classes, a load in each turn: 30 trips to L2 one after another.
/// 2. Sixteen logits are loaded at once, and come from L1 the second and third time; one division serves all
///    classes. No branch in exp: sixteen run side by side. A block is a warp: the batch spreads over more
///    multiprocessors, and its sums are one shuffle tree and two votes, without a barrier.
/// 3. Four lanes a sample, joined by two shuffles for the peak and two for the sum. A lane has four logits of
///    sixteen: they stay in registers, so does each exp for the gradient, and four run side by side. (In
///    version 2 the compiler computed them again, one after another between the stores.) Ten classes need a
///    third of the instructions of version 2, about 450, and a batch of 64 eight warps instead of two. Two
///    lanes would save a shuffle and double the exps, eight the reverse. This one.
///
/// Limits on an H100. Net at batch 64 moves 5 KB, LeNet at batch 256 20 KB: nothing. One trip to L2 remains,
/// one exp and one log one after another, and the shuffles: about 0.6 us by its instructions; one
/// launch.
#include "common/error.hpp"
#include "kernels/cuda/loss_sample.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

/// Variants that a kernel is compiled for.
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

/// The logit of a label, in all lanes of the sample.
__device__ inline float logit_of(const LanePart& part, int label) {
  float logit = 0;
  part.for_each([&](int c, float v) { logit = c == label ? v : logit; });
  const int sample = static_cast<int>(threadIdx.x) % kSamplesOfWarp;
  return __shfl_sync(kAllLanes, logit,
                     static_cast<int>(static_cast<unsigned>(label) % kLossLanes) * kSamplesOfWarp + sample);
}

/// Cross-entropy of smoothed targets, with weights of classes, or of two labels, as kernels/cpu/loss.cpp.
template <bool kMixed>
struct WeightedTarget {
  LossRule rule;
  float weight_sum, own;  ///< `own`: share of the label's class beyond rule.spread
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
    const float log_sum = log_of_loss<ScalarMath>(sum);
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

  /// Share of the target that class c has.
  __device__ float of_class(int c, int label) const {
    const float spread = rule.spread * weight_of(rule, c);
    const float target = c == label ? own + spread : spread;
    return kMixed && c == second ? second_own + target : target;
  }

  /// @param other  for two classes: the logit of that which another lane has
  __device__ void store_gradient(const LanePart& part, float peak, float other, float sum, int label,
                                 float* to) const {
    const float scale = 1.0F / sum;
    const float all = (kMixed ? own + second_own : own) + rule.spread * weight_sum;
    const bool is_smoothed_pair = part.classes == 2 && rule.spread > 0;
    part.for_each([&](int c, float v) {
      if (c >= part.classes) return;
      const float softmax = exp_of_loss<ScalarMath>(v - peak) * scale, target = of_class(c, label);
      const float gradient = is_smoothed_pair ? softmax * of_class(1 - c, label) -
                                                    exp_of_loss<ScalarMath>(other - peak) * scale * target
                                              : softmax * all - target;
      to[static_cast<std::size_t>(c) * part.stride] = gradient * rule.scale;
    });
  }
};

/// The losses of single outputs: their mean over the classes. For kLabelSets, is_largest: the outputs above 0 are those
/// of the sample's labels. @param to  for the gradient; null: not wanted
template <Form kForm>
__device__ inline SampleLoss mean_over_outputs(const LanePart& part, const LossRule& rule, int label,
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
  const int sample = static_cast<int>(threadIdx.x) % kSamplesOfWarp;
  return {loss, (__ballot_sync(kAllLanes, differs) >> sample & kOneSample) == 0};
}

/// @param to  for the gradient; null: this lane stores none
template <Form kForm>
__device__ inline SampleLoss loss_of_sample(const LossArgs& args, const LanePart& part, int n, int label,
                                            float* to) {
  if constexpr (kForm == Form::kLabelSets) return mean_over_outputs<kForm>(part, args.rule, label, to);
  if constexpr (kForm == Form::kPlain) return cross_entropy(part, label, to);
  const float peak = find_peak(part);
  if constexpr (kForm == Form::kMeanSquares || kForm == Form::kBinaryCrossEntropy) {
    const Answer answer = find_answer(part, peak, label);
    return {mean_over_outputs<kForm>(part, args.rule, label, to).loss, answer.is_largest};
  } else {
    const float sum = sum_exp(part, peak);
    const Answer answer = find_answer(part, peak, label);
    const WeightedTarget<kForm == Form::kMixed> target(args, n, label);
    const float loss = target.loss(part, peak, answer.logit, sum);
    const float other = __shfl_xor_sync(kAllLanes, part.v[0], kSamplesOfWarp);
    if (to != nullptr) target.store_gradient(part, peak, other, sum, label, to);
    return {loss, answer.is_largest};
  }
}

/// The score of sample n, in all of its lanes. They compute together, so `n` is one of the batch in every
/// lane; `counts` tells whether it is this lane's to store.
template <Form kForm>
__device__ inline SampleScore score_sample(const LossArgs& args, int n, bool counts) {
  const std::size_t start = static_cast<std::size_t>(n) * args.layout.sample_stride;
  const int first = static_cast<int>(threadIdx.x) / kSamplesOfWarp;
  LanePart part = {{args.layout.feature_stride, args.classes, first, {}}, args.logits + start};
  part.load(part.first, part.v);
  const SampleLoss loss =
      loss_of_sample<kForm>(args, part, n, args.target.labels[n],
                            args.dlogits != nullptr && counts ? args.dlogits + start : nullptr);
  return score_of(loss, args.target.narrow_limit);
}

template <Form kForm>
__global__ void __launch_bounds__(kLanes) loss_kernel(LossArgs args) {
  const int n =
      static_cast<int>(blockIdx.x) * kSamplesOfWarp + static_cast<int>(threadIdx.x) % kSamplesOfWarp;
  const std::uint32_t stops = stops_of_block(args.target);
  const bool counts = n < args.batch;
  SampleScore score = score_sample<kForm>(args, counts ? n : args.batch - 1, counts);
  if (!counts) score = {};
  add_scores(args.target, args.batch, stops, score);
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

void NativeOps::loss_and_gradient(Stream& stream, const LossShape& shape, const float* logits,
                                  const LossTarget& target, float* dlogits) {
  LOCKSTEP_CHECK(shape.batch >= 1 && shape.classes >= 1 && shape.samples == shape.batch);
  LOCKSTEP_CHECK(target.narrow_limit >= narrow_loss_limit(kMostLossTerms));
  const LossArgs args = {shape.batch,
                         shape.classes,
                         layout(shape.batch, shape.classes),
                         logits,
                         target,
                         dlogits,
                         shape.rule,
                         shape.weight_sum(),
                         shape.mixed};
  const dim3 blocks(static_cast<unsigned>(pieces(shape.batch, kSamplesOfWarp)));
  launch(on(stream), {blocks, dim3(kLanes)}, kernel_for(shape), args);
}

}  // namespace lockstep::LOCKSTEP_GPU
