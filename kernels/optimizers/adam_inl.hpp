// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adam (Kingma and Ba, 2015) as torch.optim.Adam and AdamW have it, AMSGrad (Reddi, Kale and Kumar, 2018) among them.

template <bool kDecoupled, bool kAmsgrad>
struct Adam {
  using Step = AdamStep;
  static constexpr int kBuffers = kAmsgrad ? 3 : 2;  // exp_avg, exp_avg_sq, max_exp_avg_sq
  static constexpr bool kUsesNorms = false;

  template <class N>
  LOCKSTEP_RULE static void move(const N& n, const Step& step, const TensorFactors& tensor,
                                 typename N::Number gradient, typename N::Number* buffers,
                                 typename N::Number& w) {
    const auto decay = n.of(tensor.decay);
    const auto g = kDecoupled ? gradient : n.fma(decay, w, gradient);
    const auto start = kDecoupled ? n.fma(n.of(-tensor.decay), w, w) : w;
    buffers[0] = n.fma(n.of(step.one_minus_beta1), n.sub(g, buffers[0]), buffers[0]);
    const auto squared = n.mul(n.mul(n.of(step.one_minus_beta2), g), g);
    buffers[1] = n.fma(n.of(step.beta2), buffers[1], squared);
    if constexpr (kAmsgrad) buffers[2] = n.larger(buffers[2], buffers[1]);
    const auto divisor = n.fma(n.sqrt(buffers[kAmsgrad ? 2 : 1]), n.of(step.correction2), n.of(step.eps));
    w = n.fma(n.of(-tensor.rate), n.div(buffers[0], divisor), start);
  }
};
