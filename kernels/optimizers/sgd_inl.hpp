// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stochastic gradient descent as in torch.optim.SGD: with momentum three fused multiply-adds and a
/// multiplication a parameter, Nesterov's direction is one more.

struct Sgd {
  using Step = SgdStep;
  static constexpr int kBuffers = 0;
  static constexpr bool kUsesNorms = false;

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& /*step*/, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* /*buffers*/,
                                 typename N::Number& w) {
    const auto direction = n.fma(n.of(tensor.decay), w, gradient);
    w = n.fma(n.of(-tensor.rate), direction, w);
  }
};

template <bool kNesterov>
struct SgdWithMomentum {
  using Step = SgdStep;
  static constexpr int kBuffers = 1;
  static constexpr bool kUsesNorms = false;

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto momentum = n.of(step.momentum);
    const auto decayed = n.fma(n.of(tensor.decay), w, gradient);
    buffers[0] = n.fma(momentum, buffers[0], n.mul(n.of(step.share), decayed));
    const auto direction = kNesterov ? n.fma(momentum, buffers[0], decayed) : buffers[0];
    w = n.fma(n.of(-tensor.rate), direction, w);
  }
};
