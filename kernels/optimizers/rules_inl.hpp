// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every update rule, and the selection of one by name: the one list of them for kernels.
///
/// Included inside a namespace by what compiles the rules for a device, once for each SIMD target of a CPU.
/// So it has no include guard and no includes: those are kernels/optimizers/update_rule.hpp and rule_steps.hpp.
/// LOCKSTEP_RULE, defined before it, says how such a function is declared there. `n` is the device's arithmetic,
/// on its numbers: set(float), fma(a, b, c) = a * b + c, add, sub, mul, div, sqrt, each rounded once, and
/// select_below(a, b, yes, no) for a < b ? yes : no.
///
/// A rule that has kMeasuresDirection is asked for a tensor's factors by adapted(). That gets the norm of its weights and of
/// its gradient, or where it is true, that of direction(), which move() then computes once more: it need not be
/// kept.

template <class Rule>
inline constexpr bool kUsesNorms = requires {
  Rule::kMeasuresDirection;
};

/// a if a > b and b otherwise, also where one is NaN.
LOCKSTEP_RULE auto larger(const auto& n, auto a, auto b) {
  return n.select_below(b, a, a, b);
}

/// The clipped element of the gradient, which a rule sees.
LOCKSTEP_RULE auto clipped(const auto& n, const ClipStep& clip, auto gradient) {
  const auto limit = n.set(clip.limit);
  const auto raised = larger(n, n.set(-clip.limit), n.mul(n.set(clip.factor), gradient));
  return n.select_below(limit, raised, limit, raised);
}

// Stochastic gradient descent like torch.optim.SGD. With momentum it is three fused multiply-adds and a
// multiplication a parameter; Nesterov's direction is one more.

struct Sgd {
  using Step = SgdStep;
  static constexpr int kBuffers = 0;

  LOCKSTEP_RULE static void move(const auto& n, const Step& /*step*/, const TensorFactors& tensor,
                                 auto gradient, auto* /*buffers*/, auto& w) {
    const auto direction = n.fma(n.set(tensor.decay), w, gradient);
    w = n.fma(n.set(-tensor.rate), direction, w);
  }
};

template <bool kNesterov>
struct SgdWithMomentum {
  using Step = SgdStep;
  static constexpr int kBuffers = 1;

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto momentum = n.set(step.momentum);
    const auto decayed = n.fma(n.set(tensor.decay), w, gradient);
    buffers[0] = n.fma(momentum, buffers[0], n.mul(n.set(step.share), decayed));
    const auto direction = kNesterov ? n.fma(momentum, buffers[0], decayed) : buffers[0];
    w = n.fma(n.set(-tensor.rate), direction, w);
  }
};

// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017), without clipping. Like NVIDIA Apex's LARC on SGD
// with momentum: each tensor has a rate, from the norms of its weights and of
// its gradient.

struct Lars {
  using Step = LarsStep;
  static constexpr int kBuffers = 1;  // momentum
  static constexpr bool kMeasuresDirection = false;

  /// In double, rounded once. A tensor that is zero, or whose gradient is, moves as with SGD and does not
  /// decay.
  LOCKSTEP_RULE static TensorFactors adapted(const Step& step, const UpdateTensor& tensor, TensorFactors own,
                                             double weight_norm, double gradient_norm) {
    if (!tensor.adapts) return own;
    if (!(weight_norm > 0) || !(gradient_norm > 0)) {
      own.decay = 0;
      return own;
    }
    const double divisor = gradient_norm + weight_norm * own.decay + step.eps;
    own.trust = static_cast<float>(step.trust * weight_norm / divisor);
    return own;
  }

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto adapted = n.mul(n.set(tensor.trust), n.fma(n.set(tensor.decay), w, gradient));
    buffers[0] = n.fma(n.set(step.momentum), buffers[0], adapted);
    w = n.fma(n.set(-tensor.rate), buffers[0], w);
  }
};

// Adam (Kingma and Ba, 2015) as torch.optim.Adam and AdamW have it, AMSGrad (Reddi, Kale and Kumar, 2018) among them.

template <bool kDecoupled, bool kAmsgrad>
struct Adam {
  using Step = AdamStep;
  static constexpr int kBuffers = kAmsgrad ? 3 : 2;  // exp_avg, exp_avg_sq, max_exp_avg_sq

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto decay = n.set(tensor.decay);
    const auto g = kDecoupled ? gradient : n.fma(decay, w, gradient);
    const auto start = kDecoupled ? n.fma(n.set(-tensor.decay), w, w) : w;
    buffers[0] = n.fma(n.set(step.one_minus_beta1), n.sub(g, buffers[0]), buffers[0]);
    const auto squared = n.mul(n.mul(n.set(step.one_minus_beta2), g), g);
    buffers[1] = n.fma(n.set(step.beta2), buffers[1], squared);
    if constexpr (kAmsgrad) buffers[2] = larger(n, buffers[2], buffers[1]);
    const auto divisor = n.fma(n.sqrt(buffers[kAmsgrad ? 2 : 1]), n.set(step.correction2), n.set(step.eps));
    w = n.fma(n.set(-tensor.rate), n.div(buffers[0], divisor), start);
  }
};

// LAMB (You et al., 2020), like NVIDIA Apex's FusedLAMB and timm's Lamb, which clip no gradient here. It is Adam's
// direction with weight decay, and for each tensor a rate from the norms of its weights and of that direction.

struct Lamb {
  using Step = AdamStep;
  static constexpr int kBuffers = 2;  // exp_avg, exp_avg_sq
  static constexpr bool kMeasuresDirection = true;

  /// In double, rounded once. A tensor that does not decay, that is zero, or whose direction is, moves as with Adam.
  LOCKSTEP_RULE static TensorFactors adapted(const Step& /*step*/, const UpdateTensor& /*tensor*/,
                                             TensorFactors own, double weight_norm, double direction_norm) {
    if (own.decay != 0 && weight_norm > 0 && direction_norm > 0)
      own.trust = static_cast<float>(weight_norm / direction_norm);
    return own;
  }

  /// Moves the buffers.
  LOCKSTEP_RULE static auto direction(const auto& n, const Step& step, const TensorFactors& tensor,
                                      auto gradient, auto* buffers, const auto& w) {
    buffers[0] = n.fma(n.set(step.one_minus_beta1), n.sub(gradient, buffers[0]), buffers[0]);
    const auto squared = n.mul(n.mul(n.set(step.one_minus_beta2), gradient), gradient);
    buffers[1] = n.fma(n.set(step.beta2), buffers[1], squared);
    const auto divisor = n.fma(n.sqrt(buffers[1]), n.set(step.correction2), n.set(step.eps));
    const auto adam = n.div(n.mul(n.set(step.correction1), buffers[0]), divisor);
    return n.fma(n.set(tensor.decay), w, adam);
  }

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto along = direction(n, step, tensor, gradient, buffers, w);
    w = n.fma(n.set(-(tensor.rate * tensor.trust)), along, w);
  }
};

// RMSprop (Hinton, 2012) as torch.optim.RMSprop has it, not centered.

template <bool kMomentum>
struct Rmsprop {
  using Step = RmspropStep;
  static constexpr int kBuffers = kMomentum ? 2 : 1;  // square_avg, momentum

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto g = n.fma(n.set(tensor.decay), w, gradient);
    const auto squared = n.mul(n.mul(n.set(step.one_minus_alpha), g), g);
    buffers[0] = n.fma(n.set(step.alpha), buffers[0], squared);
    auto direction = n.div(g, n.add(n.sqrt(buffers[0]), n.set(step.eps)));
    if constexpr (kMomentum) {
      buffers[1] = n.fma(n.set(step.momentum), buffers[1], direction);
      direction = buffers[1];
    }
    w = n.fma(n.set(-tensor.rate), direction, w);
  }
};

// Lion (Chen et al., 2023, "Symbolic discovery of optimization algorithms"). A weight moves by the rate, up or down.

struct Lion {
  using Step = LionStep;
  static constexpr int kBuffers = 1;  // exp_avg

  LOCKSTEP_RULE static void move(const auto& n, const Step& step, const TensorFactors& tensor, auto gradient,
                                 auto* buffers, auto& w) {
    const auto along = n.fma(n.set(step.beta1), buffers[0], n.mul(n.set(step.one_minus_beta1), gradient));
    const auto start = n.fma(n.set(-tensor.decay), w, w);
    w = n.fma(n.set(-tensor.rate), sign(n, along), start);
    buffers[0] = n.fma(n.set(step.beta2), buffers[0], n.mul(n.set(step.one_minus_beta2), gradient));
  }

 private:
  /// -1, 0 or 1; 0 for NaN, as for zero. (x / |x| is NaN there, which larger() does not accept.)
  LOCKSTEP_RULE static auto sign(const auto& n, auto x) {
    const auto zero = n.set(0.0F);
    const auto unit = n.div(x, larger(n, x, n.sub(zero, x)));
    return n.sub(larger(n, unit, zero), larger(n, n.sub(zero, unit), zero));
  }
};

// The way from a name to its rule.

/// In the order of UpdateRule.
using Rules =
    std::tuple<Sgd, SgdWithMomentum<false>, SgdWithMomentum<true>, Adam<false, false>, Adam<false, true>,
               Adam<true, false>, Adam<true, true>, Rmsprop<false>, Rmsprop<true>, Lars, Lamb, Lion>;
static_assert(std::tuple_size_v<Rules> == static_cast<std::size_t>(UpdateRule::kLion) + 1);

/// Calls `visitor` with an object of the rule's type.
template <std::size_t kIndex = 0, class Visitor>
auto visit_rule(UpdateRule rule, const Visitor& visitor) {
  if constexpr (kIndex + 1 < std::tuple_size_v<Rules>)
    if (rule != UpdateRule{kIndex}) return visit_rule<kIndex + 1>(rule, visitor);
  return visitor(std::tuple_element_t<kIndex, Rules>());
}
