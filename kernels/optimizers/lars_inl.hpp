// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017) as NVIDIA Apex's LARC has it around SGD
/// with momentum, without clipping: each tensor has a rate of its own, from the norms of its weights and of
/// its gradient.

struct Lars {
  using Step = LarsStep;
  static constexpr int kBuffers = 1;  // momentum
  static constexpr bool kUsesNorms = true;

  /// In double, rounded once. A tensor that is zero, or whose gradient is, moves as with SGD and does not
  /// decay.
  LOCKSTEP_RULE static TensorFactors factors(const Step& step, const UpdateTensor& tensor, double weight_norm,
                                             double gradient_norm) {
    if (!tensor.adapts) return {tensor.decays ? step.decay : 0, 1};
    if (!(weight_norm > 0) || !(gradient_norm > 0)) return {0, 1};
    const float decay = tensor.decays ? step.decay : 0;
    const double divisor = gradient_norm + weight_norm * decay + step.eps;
    return {decay, static_cast<float>(step.trust * weight_norm / divisor)};
  }

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto adapted = n.mul(n.of(tensor.rate), n.fma(n.of(tensor.decay), w, gradient));
    buffers[0] = n.fma(n.of(step.momentum), buffers[0], adapted);
    w = n.fma(n.of(-step.rate), buffers[0], w);
  }
};
