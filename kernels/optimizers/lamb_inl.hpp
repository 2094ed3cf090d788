// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// LAMB (You et al., 2020) as NVIDIA Apex's FusedLAMB and timm's Lamb have it, which clip no gradient here: Adam's
/// direction with weight decay, and for each tensor a rate from the norms of its weights and of that direction.

struct Lamb {
  using Step = LambStep;
  static constexpr int kBuffers = 2;  // exp_avg, exp_avg_sq
  static constexpr bool kUsesNorms = true;
  static constexpr bool kMeasuresDirection = true;

  /// In double, rounded once. A tensor that does not decay, that is zero, or whose direction is, moves as with Adam.
  LOCKSTEP_RULE static TensorFactors adapted(const Step& /*step*/, const UpdateTensor& /*tensor*/,
                                             TensorFactors own, double weight_norm, double direction_norm) {
    if (own.decay != 0 && weight_norm > 0 && direction_norm > 0)
      own.trust = static_cast<float>(weight_norm / direction_norm);
    return own;
  }

  /// Moves the buffers.
  template <class N>
  LOCKSTEP_RULE static typename N::Number direction(const N& n, const Step& step, const TensorFactors& tensor,
                                                    typename N::Number gradient, typename N::Number* buffers,
                                                    const typename N::Number& w) {
    buffers[0] = n.fma(n.of(step.one_minus_beta1), n.sub(gradient, buffers[0]), buffers[0]);
    const auto squared = n.mul(n.mul(n.of(step.one_minus_beta2), gradient), gradient);
    buffers[1] = n.fma(n.of(step.beta2), buffers[1], squared);
    const auto divisor = n.fma(n.sqrt(buffers[1]), n.of(step.correction2), n.of(step.eps));
    const auto adam = n.div(n.mul(n.of(step.correction1), buffers[0]), divisor);
    return n.fma(n.of(tensor.decay), w, adam);
  }

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto along = direction(n, step, tensor, gradient, buffers, w);
    w = n.fma(n.of(-(tensor.rate * tensor.trust)), along, w);
  }
};
