// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017) as NVIDIA Apex's LARC has it around SGD
/// with momentum, without clipping: each tensor has a rate of its own, from the norms of its weights and of
/// its gradient.

struct Lars {
  using Step = LarsStep;
  static constexpr int kBuffers = 1;  // momentum
  static constexpr bool kUsesNorms = true;
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

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto adapted = n.mul(n.of(tensor.trust), n.fma(n.of(tensor.decay), w, gradient));
    buffers[0] = n.fma(n.of(step.momentum), buffers[0], adapted);
    w = n.fma(n.of(-tensor.rate), buffers[0], w);
  }
};
