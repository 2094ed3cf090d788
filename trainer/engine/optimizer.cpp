// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/optimizer.hpp"

namespace lockstep {

Optimizer::Optimizer(const OptimizerSection& section, std::size_t parameters)
    : params_{.learning_rate = static_cast<float>(section.lr),
              .momentum = static_cast<float>(section.momentum),
              .weight_decay = static_cast<float>(section.weight_decay),
              .nesterov = section.nesterov},
      momentum_(parameters) {}

void Optimizer::step(Ops& ops, std::span<const float> gradient, std::span<float> weights) {
  ops.sgd_step(params_, weights.size(), gradient.data(), momentum_.data(), weights.data());
}

}  // namespace lockstep
