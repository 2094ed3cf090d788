// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Log-softmax and losses: a lane is a sample. The arithmetic is that of kernels/cuda/loss.cu.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/activation_math_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// Variants that a pass over a batch is compiled for. The plain cross-entropy is one whose own share is 1.
enum class LossForm { kCrossEntropy, kMeanSquares, kBinaryCrossEntropy, kLabelSets };

using Samples = hn::CappedTag<float, 16>;
using Labels = hn::RebindToSigned<Samples>;
using FloatVec = hn::Vec<Samples>;
using LossMath = VectorMath<Samples>;
using LabelVec = hn::Vec<Labels>;

HWY_INLINE float weight_of(const LossRule& rule, int c) {
  return rule.class_weights == nullptr ? 1.0F : rule.class_weights[c];
}

/// Results of the first pass over the classes, for a vector of samples.
struct Peak {
  FloatVec value;   ///< largest logit
  LabelVec index;   ///< its class, the first among equals
  FloatVec target;  ///< logit of the label
};

HWY_INLINE Peak find_peak(const LossShape& shape, const float* logits, LabelVec label) {
  const Samples d;
  const Labels di;
  Peak peak = {hn::LoadU(d, logits), hn::Zero(di), hn::LoadU(d, logits)};
  for (int c = 1; c < shape.classes; ++c) {
    const auto logit = hn::LoadU(d, logits + std::size_t{1} * c * shape.batch);
    const auto position = hn::Set(di, c);
    const auto greater = hn::Gt(logit, peak.value);
    peak.value = hn::IfThenElse(greater, logit, peak.value);
    peak.index = hn::IfThenElse(hn::RebindMask(di, greater), position, peak.index);
    peak.target = hn::IfThenElse(hn::RebindMask(d, hn::Eq(label, position)), logit, peak.target);
  }
  return peak;
}

HWY_INLINE FloatVec add_sums(const FloatVec (&sums)[kLossSums]) {
  static_assert(kLossSums == 4);
  return hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
}

/// Sum over the classes of exp(logit - peak), in the order of kLossSums.
/// @param e  keeps the terms, may be the logits; null: nothing does
HWY_INLINE FloatVec sum_exp(const LossShape& shape, const float* logits, FloatVec peak, float* e) {
  const Samples d;
  FloatVec sums[kLossSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (int c = 0; c < shape.classes; ++c) {
    const std::size_t offset = std::size_t{1} * c * shape.batch;
    const auto term = exp_of_loss<LossMath>(hn::Sub(hn::LoadU(d, logits + offset), peak));
    if (e != nullptr) hn::StoreU(term, d, e + offset);
    sums[c % kLossSums] = hn::Add(sums[c % kLossSums], term);
  }
  return add_sums(sums);
}

// Cross-entropy, also of smoothed targets, with weights of classes, or of two labels.

/// Sum over the classes of (peak - logit) times the class's weight, in the order of kLossSums.
HWY_INLINE FloatVec sum_weighted_distances(const LossShape& shape, const float* logits, FloatVec peak) {
  const Samples d;
  FloatVec sums[kLossSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (int c = 0; c < shape.classes; ++c, logits += shape.batch) {
    const auto weight = hn::Set(d, weight_of(shape.rule, c));
    sums[c % kLossSums] = hn::Add(sums[c % kLossSums], hn::Mul(weight, hn::Sub(peak, hn::LoadU(d, logits))));
  }
  return add_sums(sums);
}

/// The second labels of samples that have two.
struct SecondLabels {
  LabelVec label;
  FloatVec logit;
  FloatVec own;  ///< shares of the target that their classes have beyond `spread`
};

/// Shares of the target that the class of the label has beyond `spread`.
HWY_INLINE FloatVec own_shares(const LossShape& shape, const std::int32_t* labels, int real) {
  const Samples d;
  HWY_ALIGN float shares[16];
  for (int lane = 0; lane < static_cast<int>(hn::Lanes(d)); ++lane) {
    const bool is_mixed = shape.mixed != nullptr && lane < real;
    const float share =
        is_mixed ? shape.rule.label_share * (1.0F - shape.mixed[lane].share) : shape.rule.label_share;
    shares[lane] = share * weight_of(shape.rule, labels[lane]);
  }
  return hn::Load(d, shares);
}

HWY_INLINE SecondLabels second_labels(const LossShape& shape, const float* logits, int real) {
  const Samples d;
  const Labels di;
  HWY_ALIGN std::int32_t labels[16] = {};
  HWY_ALIGN float of_label[16] = {}, own[16] = {};
  for (int lane = 0; lane < real; ++lane) {
    const MixedLabel& mixed = shape.mixed[lane];
    labels[lane] = mixed.label;
    of_label[lane] = logits[std::size_t{1} * mixed.label * shape.batch + lane];
    own[lane] = shape.rule.label_share * mixed.share * weight_of(shape.rule, mixed.label);
  }
  return {hn::Load(di, labels), hn::Load(d, of_label), hn::Load(d, own)};
}

/// Turns e, the terms of sum_exp, into the gradient: softmax times the sum of the target, less the target. 0 in lanes
/// from `real` on. With two classes and smoothed targets, each has its softmax times the other's target less the
/// other's softmax times its target: the same number without what cancels.
/// @param second  null: samples have one label
HWY_INLINE void finish_gradient(const LossShape& shape, FloatVec sum, FloatVec own, LabelVec label,
                                const SecondLabels* second, int real, float* e) {
  const Samples d;
  const Labels di;
  const LossRule& rule = shape.rule;
  const auto is_real = hn::FirstN(d, static_cast<std::size_t>(real));
  const auto scale = hn::Div(hn::Set(d, 1.0F), sum), factor = hn::Set(d, rule.scale);
  const auto of_labels = second == nullptr ? own : hn::Add(own, second->own);
  const auto all = hn::Add(of_labels, hn::Set(d, rule.spread * shape.weight_sum()));
  const auto target_of = [&](int c) HWY_ATTR {
    const auto position = hn::Set(di, c);
    const auto spread = hn::Set(d, rule.spread * weight_of(rule, c));
    const auto is_label = hn::RebindMask(d, hn::Eq(label, position));
    const auto target = hn::IfThenElse(is_label, hn::Add(own, spread), spread);
    if (second == nullptr) return target;
    const auto is_second = hn::RebindMask(d, hn::Eq(second->label, position));
    return hn::IfThenElse(is_second, hn::Add(second->own, target), target);
  };
  const auto share_of = [&](const float* from) HWY_ATTR { return hn::Mul(hn::LoadU(d, from), scale); };
  if (shape.classes == 2 && rule.spread > 0) {
    const auto first = hn::Mul(share_of(e), target_of(1)),
               last = hn::Mul(share_of(e + shape.batch), target_of(0));
    hn::StoreU(hn::IfThenElseZero(is_real, hn::Mul(hn::Sub(first, last), factor)), d, e);
    hn::StoreU(hn::IfThenElseZero(is_real, hn::Mul(hn::Sub(last, first), factor)), d, e + shape.batch);
    return;
  }
  for (int c = 0; c < shape.classes; ++c, e += shape.batch) {
    const auto share = share_of(e), target = target_of(c);
    const auto gradient = hn::Mul(hn::Sub(hn::Mul(share, all), target), factor);
    hn::StoreU(hn::IfThenElseZero(is_real, gradient), d, e);
  }
}

HWY_INLINE FloatVec cross_entropy(const LossShape& shape, const float* logits, const Peak& peak,
                                  const std::int32_t* labels, LabelVec label, int real, float* dlogits) {
  const Samples d;
  const LossRule& rule = shape.rule;
  const auto own = own_shares(shape, labels, real);
  const bool is_mixed = shape.mixed != nullptr;
  const SecondLabels second = second_labels(shape, logits, is_mixed ? real : 0);
  const auto distances = rule.spread > 0 ? sum_weighted_distances(shape, logits, peak.value) : hn::Zero(d);
  const auto sum = sum_exp(shape, logits, peak.value, dlogits);
  if (dlogits != nullptr)
    finish_gradient(shape, sum, own, label, is_mixed ? &second : nullptr, real, dlogits);
  const auto log_sum = log_of_loss<LossMath>(sum);
  auto loss = hn::Mul(own, hn::Add(log_sum, hn::Sub(peak.value, peak.target)));
  if (is_mixed)
    loss = hn::Add(loss, hn::Mul(second.own, hn::Add(log_sum, hn::Sub(peak.value, second.logit))));
  if (rule.spread > 0) {
    const auto of_all = hn::Add(distances, hn::Mul(log_sum, hn::Set(d, shape.weight_sum())));
    loss = hn::Add(loss, hn::Mul(hn::Set(d, rule.spread), of_all));
  }
  return hn::Mul(loss, hn::Set(d, rule.scale));
}

/// 1 in the lanes of samples that have class c among their labels, 0 in others.
HWY_INLINE FloatVec is_in_label_set(const LossShape& shape, const std::int32_t* labels, int real, int c) {
  const Samples d;
  HWY_ALIGN float is_label[16] = {};
  for (int lane = 0; lane < real; ++lane)
    is_label[lane] = shape.rule.label_sets[std::size_t{1} * labels[lane] * shape.classes + c];
  return hn::Load(d, is_label);
}

/// The other kinds of loss: means over the outputs.
/// @param best  for kLabelSets: -1 in lanes whose outputs above 0 are not those of their labels
template <LossForm kForm>
HWY_INLINE FloatVec mean_over_outputs(const LossShape& shape, const float* x, const std::int32_t* labels,
                                      LabelVec label, int real, float* dx, LabelVec& best) {
  const Samples d;
  const Labels di;
  const auto is_real = hn::FirstN(d, static_cast<std::size_t>(real));
  const auto share = hn::Set(d, 1.0F / static_cast<float>(shape.classes));
  const auto spread = hn::Set(d, shape.rule.spread);
  const auto at_label = hn::Set(d, shape.rule.label_share + shape.rule.spread);
  FloatVec sums[kLossSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (int c = 0; c < shape.classes; ++c) {
    const std::size_t offset = std::size_t{1} * c * shape.batch;
    const auto output = hn::LoadU(d, x + offset);
    FloatVec target;
    if constexpr (kForm == LossForm::kLabelSets) {
      target = is_in_label_set(shape, labels, real, c);
      const auto answer = hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), hn::Set(d, 1.0F));
      const auto is_wrong = hn::RebindMask(di, hn::Ne(answer, target));
      best = hn::IfThenElse(is_wrong, hn::Set(di, -1), best);
    } else {
      const auto is_label = hn::RebindMask(d, hn::Eq(label, hn::Set(di, c)));
      target = hn::IfThenElse(is_label, at_label, spread);
    }
    const auto of_output = kForm == LossForm::kMeanSquares ? squared_error<LossMath>(output, target)
                                                           : binary_cross_entropy<LossMath>(output, target);
    sums[c % kLossSums] = hn::Add(sums[c % kLossSums], of_output.loss);
    if (dx != nullptr)
      hn::StoreU(hn::IfThenElseZero(is_real, hn::Mul(of_output.slope, share)), d, dx + offset);
  }
  return hn::Mul(add_sums(sums), share);
}

/// @param losses, best  of the samples: loss and answer
HWY_INLINE void add_in_order(const float* losses, const std::int32_t* best, const std::int32_t* labels,
                             int real, LossSums* sums) {
  for (int lane = 0; lane < real; ++lane) {
    const float loss = losses[lane];
    if (best[lane] == labels[lane] && !std::isnan(loss)) ++sums->correct;
    if (std::isfinite(loss))
      sums->loss += std::rint(static_cast<double>(loss) * kLossScale) / kLossScale;
    else
      ++sums->not_finite;
  }
}

/// The columns [0, Lanes(Samples())) from the given pointers on, of which `real` are samples.
template <LossForm kForm>
HWY_INLINE void loss_of_lanes(const LossShape& shape, const float* logits, const std::int32_t* labels,
                              int real, float* dlogits, LossSums* sums) {
  const Samples d;
  const Labels di;
  HWY_ALIGN std::int32_t padded_labels[16] = {};
  std::copy_n(labels, real, padded_labels);
  const auto label = hn::Load(di, padded_labels);
  Peak peak;
  if constexpr (kForm == LossForm::kLabelSets)
    peak.index = label;
  else
    peak = find_peak(shape, logits, label);
  FloatVec loss;
  if constexpr (kForm == LossForm::kCrossEntropy)
    loss = cross_entropy(shape, logits, peak, padded_labels, label, real, dlogits);
  else
    loss = mean_over_outputs<kForm>(shape, logits, padded_labels, label, real, dlogits, peak.index);
  HWY_ALIGN float losses[16];
  HWY_ALIGN std::int32_t best[16];
  hn::Store(loss, d, losses);
  hn::Store(peak.index, di, best);
  add_in_order(losses, best, labels, real, sums);
}

template <LossForm kForm>
void loss_of_batch(LossShape shape, const float* logits, const std::int32_t* labels, float* dlogits,
                   LossSums* sums) {
  const int lanes = static_cast<int>(hn::Lanes(Samples()));
  LossSums total;
  for (int n = 0; n < shape.batch; n += lanes) {
    const int real = std::clamp(shape.samples - n, 0, lanes);
    if (real == 0 && dlogits == nullptr) break;
    loss_of_lanes<kForm>(shape, logits + n, labels + std::min(n, shape.samples), real,
                         dlogits == nullptr ? nullptr : dlogits + n, &total);
    if (shape.mixed != nullptr) shape.mixed += real;
  }
  *sums = total;
}

void loss_and_gradient(const LossShape& shape, const float* logits, const std::int32_t* labels,
                       float* dlogits, LossSums* sums) {
  const auto run = [&](auto of_batch) { of_batch(shape, logits, labels, dlogits, sums); };
  switch (shape.rule.kind) {
    case LossKind::kCrossEntropy:
      return run(loss_of_batch<LossForm::kCrossEntropy>);
    case LossKind::kMeanSquares:
      return run(loss_of_batch<LossForm::kMeanSquares>);
    case LossKind::kBinaryCrossEntropy:
      return run(shape.rule.label_sets != nullptr ? loss_of_batch<LossForm::kLabelSets>
                                                  : loss_of_batch<LossForm::kBinaryCrossEntropy>);
  }
}

void log_softmax(const LossShape& shape, const float* logits, float* y) {
  const Samples d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int n = 0; n < shape.batch; n += lanes) {
    const auto peak = find_peak(shape, logits + n, hn::Zero(Labels())).value;
    const auto log_sum = log_of_loss<LossMath>(sum_exp(shape, logits + n, peak, nullptr));
    for (int c = 0; c < shape.classes; ++c) {
      const std::size_t at = std::size_t{1} * c * shape.batch + n;
      hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, logits + at), peak), log_sum), d, y + at);
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(log_softmax);
HWY_EXPORT(loss_and_gradient);

void log_softmax(const LossShape& shape, const float* logits, float* y) {
  HWY_DYNAMIC_DISPATCH(log_softmax)(shape, logits, y);
}

void loss_and_gradient(const LossShape& shape, const float* logits, const std::int32_t* labels,
                       float* dlogits, LossSums* sums) {
  if (shape.rule.own != nullptr) return shape.rule.own->compute(shape, logits, labels, dlogits, sums);
  HWY_DYNAMIC_DISPATCH(loss_and_gradient)(shape, logits, labels, dlogits, sums);
}

}  // namespace lockstep::cpu
#endif
