// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RMSprop (Hinton, 2012) as torch.optim.RMSprop has it, not centered.

template <bool kMomentum>
struct Rmsprop {
  using Step = RmspropStep;
  static constexpr int kBuffers = kMomentum ? 2 : 1;  // square_avg, momentum
  static constexpr bool kUsesNorms = false;

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto g = n.fma(n.of(tensor.decay), w, gradient);
    const auto squared = n.mul(n.mul(n.of(step.one_minus_alpha), g), g);
    buffers[0] = n.fma(n.of(step.alpha), buffers[0], squared);
    auto direction = n.div(g, n.add(n.sqrt(buffers[0]), n.of(step.eps)));
    if constexpr (kMomentum) {
      buffers[1] = n.fma(n.of(step.momentum), buffers[1], direction);
      direction = buffers[1];
    }
    w = n.fma(n.of(-tensor.rate), direction, w);
  }
};
