// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every update rule with numbers that exercise it, for tests that hold of all rules.
#pragma once

#include "kernels/optimizers/rule_steps.hpp"

#include <string>
#include <vector>

namespace lockstep {

struct RuleCase {
  std::string name;
  UpdateRule rule;
  StepScalars scalars;
};

struct SgdParams {
  float learning_rate, momentum, weight_decay;
  bool nesterov;
};

inline RuleCase sgd_case(const SgdParams& p) {
  const UpdateRule rule = p.momentum == 0 ? UpdateRule::kSgd
                          : p.nesterov    ? UpdateRule::kSgdNesterov
                                          : UpdateRule::kSgdMomentum;
  return {"lr " + std::to_string(p.learning_rate) + ", momentum " + std::to_string(p.momentum) + ", decay " +
              std::to_string(p.weight_decay) + (p.nesterov ? ", Nesterov" : ""),
          rule,
          pack_scalars(SgdStep{.decay = p.weight_decay, .rate = p.learning_rate, .momentum = p.momentum})};
}

inline std::vector<RuleCase> rule_cases() {
  const AdamStep adam{.decay = 0.01F,
                      .rate = 0.05F,
                      .one_minus_beta1 = 0.1F,
                      .beta2 = 0.99F,
                      .one_minus_beta2 = 0.01F,
                      .correction2 = 1.7F,
                      .eps = 1e-6F};
  const RmspropStep rmsprop{
      .decay = 0.01F, .rate = 0.05F, .alpha = 0.9F, .one_minus_alpha = 0.1F, .eps = 1e-6F, .momentum = 0.8F};
  const LarsStep lars{.decay = 0.01F, .rate = 2, .momentum = 0.9F, .trust = 0.01F, .eps = 1e-8F};
  return {sgd_case({0.05F, 0, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0, false}),
          sgd_case({0.05F, 0.9F, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0.01F, true}),
          {"adam", UpdateRule::kAdam, pack_scalars(adam)},
          {"adamw", UpdateRule::kAdamW, pack_scalars(adam)},
          {"rmsprop", UpdateRule::kRmsprop, pack_scalars(rmsprop)},
          {"rmsprop, momentum", UpdateRule::kRmspropMomentum, pack_scalars(rmsprop)},
          {"lars", UpdateRule::kLars, pack_scalars(lars)}};
}

}  // namespace lockstep
