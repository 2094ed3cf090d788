// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All optimisers: a row of the catalogue each, and what its rule is told at a step.
#include "trainer/training/optimizers/optimizers.hpp"

#include "common/spelling.hpp"
#include "kernels/numerics/portable_math.hpp"
#include "kernels/optimizers/rule_steps.hpp"

#include <cmath>

namespace lockstep {
namespace {

/// To climb, rate and weight decay change their signs, and with them what is remembered of the gradient.
double sign_of(const OptimizerSection& section) {
  return section.maximize ? -1 : 1;
}

/// A schedule moves the momentum that there is: 0 stays 0. (Adam's is betas[0], which it moves whatever it is.)
float momentum_of(const OptimizerSection& section, const ScheduledValues& now) {
  return section.momentum == 0 ? 0 : static_cast<float>(now.momentum.value_or(section.momentum));
}

// Stochastic gradient descent, plain, with momentum, or with Nesterov's.

UpdateRule sgd_rule(const OptimizerSection& section) {
  if (section.momentum == 0) return UpdateRule::kSgd;
  return section.nesterov ? UpdateRule::kSgdNesterov : UpdateRule::kSgdMomentum;
}

StepScalars sgd_scalars(const OptimizerSection& section, const ScheduledValues& now, std::int64_t step) {
  const double sign = sign_of(section);
  return pack_scalars(SgdStep{.decay = static_cast<float>(sign * section.weight_decay),
                              .rate = static_cast<float>(sign * now.lr),
                              .momentum = momentum_of(section, now),
                              .share = static_cast<float>(step == 0 ? 1 : 1 - section.dampening)});
}

std::optional<KeyComplaint> check_sgd(const OptimizerSection& section) {
  if (section.nesterov && section.momentum == 0)
    return KeyComplaint{"train.optimizer.nesterov",
                        "train.optimizer.nesterov needs momentum above 0; set train.optimizer.momentum"};
  if (section.dampening > 0 && (section.nesterov || section.momentum == 0))
    return KeyComplaint{"train.optimizer.dampening",
                        "train.optimizer.dampening needs momentum above 0, and no nesterov; leave it out"};
  return std::nullopt;
}

// Adam, and AdamW, whose weight decay does not pass through the gradient.

std::vector<std::string> adam_buffers(const OptimizerSection& section) {
  if (section.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

template <bool kDecoupled>
StepScalars adam_scalars(const OptimizerSection& section, const ScheduledValues& now, std::int64_t step) {
  const double beta1 = now.momentum.value_or(section.betas[0]), beta2 = section.betas[1];
  const double sign = sign_of(section);
  const double decay = kDecoupled ? now.lr * section.weight_decay : sign * section.weight_decay;
  return pack_scalars(
      AdamStep{.decay = static_cast<float>(decay),
               .rate = static_cast<float>(sign * now.lr / (1 - integer_power(beta1, step + 1))),
               .one_minus_beta1 = static_cast<float>(1 - beta1),
               .beta2 = static_cast<float>(beta2),
               .one_minus_beta2 = static_cast<float>(1 - beta2),
               .correction2 = static_cast<float>(1 / std::sqrt(1 - integer_power(beta2, step + 1))),
               .eps = static_cast<float>(section.eps)});
}

// RMSprop, with or without momentum.

StepScalars rmsprop_scalars(const OptimizerSection& section, const ScheduledValues& now,
                            std::int64_t /*step*/) {
  const double sign = sign_of(section);
  return pack_scalars(RmspropStep{.decay = static_cast<float>(sign * section.weight_decay),
                                  .rate = static_cast<float>(sign * now.lr),
                                  .alpha = static_cast<float>(section.alpha),
                                  .one_minus_alpha = static_cast<float>(1 - section.alpha),
                                  .eps = static_cast<float>(section.eps),
                                  .momentum = momentum_of(section, now)});
}

// LARS: SGD with momentum and a rate for each tensor.

StepScalars lars_scalars(const OptimizerSection& section, const ScheduledValues& now, std::int64_t /*step*/) {
  return pack_scalars(LarsStep{.decay = static_cast<float>(section.weight_decay),
                               .rate = static_cast<float>(now.lr),
                               .momentum = momentum_of(section, now),
                               .trust = static_cast<float>(section.trust_coefficient),
                               .eps = static_cast<float>(section.eps)});
}

// LAMB: Adam with a rate for each tensor.

StepScalars lamb_scalars(const OptimizerSection& section, const ScheduledValues& now, std::int64_t step) {
  const double beta1 = now.momentum.value_or(section.betas[0]), beta2 = section.betas[1];
  return pack_scalars(
      AdamStep{.decay = static_cast<float>(section.weight_decay),
               .rate = static_cast<float>(now.lr),
               .one_minus_beta1 = static_cast<float>(1 - beta1),
               .beta2 = static_cast<float>(beta2),
               .one_minus_beta2 = static_cast<float>(1 - beta2),
               .correction1 = static_cast<float>(1 / (1 - integer_power(beta1, step + 1))),
               .correction2 = static_cast<float>(1 / std::sqrt(1 - integer_power(beta2, step + 1))),
               .eps = static_cast<float>(section.eps)});
}

// Lion: each weight moves by the rate itself.

StepScalars lion_scalars(const OptimizerSection& section, const ScheduledValues& now, std::int64_t /*step*/) {
  const double beta1 = now.momentum.value_or(section.betas[0]), beta2 = section.betas[1];
  return pack_scalars(LionStep{.decay = static_cast<float>(now.lr * section.weight_decay),
                               .rate = static_cast<float>(sign_of(section) * now.lr),
                               .beta1 = static_cast<float>(beta1),
                               .one_minus_beta1 = static_cast<float>(1 - beta1),
                               .beta2 = static_cast<float>(beta2),
                               .one_minus_beta2 = static_cast<float>(1 - beta2)});
}

}  // namespace

const std::vector<OptimizerKind>& optimizer_kinds() {
  using Section = OptimizerSection;
  using Names = std::vector<std::string>;
  static const std::vector<OptimizerKind> kinds = {
      {.name = "sgd",
       .keys = {{"lr"}, {"momentum"}, {"weight_decay"}, {"dampening"}, {"nesterov"}, {"maximize"}},
       .rule = sgd_rule,
       .buffers = [](const Section& section) { return section.momentum == 0 ? Names{} : Names{"momentum"}; },
       .scalars = sgd_scalars,
       .check = check_sgd},
      {.name = "adam",
       .keys = {{"lr", "0.001"}, {"betas"}, {"amsgrad"}, {"eps"}, {"weight_decay"}, {"maximize"}},
       .rule =
           [](const Section& section) {
             return section.amsgrad ? UpdateRule::kAdamAmsgrad : UpdateRule::kAdam;
           },
       .buffers = adam_buffers,
       .scalars = adam_scalars<false>},
      {.name = "adamw",
       .keys = {{"lr", "0.001"}, {"betas"}, {"amsgrad"}, {"eps"}, {"weight_decay", "0.01"}, {"maximize"}},
       .rule =
           [](const Section& section) {
             return section.amsgrad ? UpdateRule::kAdamWAmsgrad : UpdateRule::kAdamW;
           },
       .buffers = adam_buffers,
       .scalars = adam_scalars<true>,
       .decay_has_rate = true},
      {.name = "rmsprop",
       .keys = {{"lr", "0.01"}, {"momentum", "0"}, {"weight_decay"}, {"eps"}, {"alpha"}, {"maximize"}},
       .rule =
           [](const Section& section) {
             return section.momentum == 0 ? UpdateRule::kRmsprop : UpdateRule::kRmspropMomentum;
           },
       .buffers =
           [](const Section& section) {
             return section.momentum == 0 ? Names{"square_avg"} : Names{"square_avg", "momentum"};
           },
       .scalars = rmsprop_scalars},
      {.name = "lars",
       .keys = {{"lr", "1"}, {"momentum"}, {"weight_decay"}, {"eps"}, {"trust_coefficient"}},
       .rule = [](const Section&) { return UpdateRule::kLars; },
       .buffers = [](const Section&) { return Names{"momentum"}; },
       .scalars = lars_scalars},
      {.name = "lion",
       .keys = {{"lr", "0.0001"}, {"betas", "[0.9, 0.99]"}, {"weight_decay"}, {"maximize"}},
       .rule = [](const Section&) { return UpdateRule::kLion; },
       .buffers = [](const Section&) { return Names{"exp_avg"}; },
       .scalars = lion_scalars,
       .decay_has_rate = true},
      {.name = "lamb",
       .keys = {{"lr", "0.001"}, {"betas"}, {"eps", "1e-6"}, {"weight_decay", "0.01"}},
       .rule = [](const Section&) { return UpdateRule::kLamb; },
       .buffers = adam_buffers,
       .scalars = lamb_scalars},
  };
  return kinds;
}

const OptimizerKind& find_optimizer(const OptimizerSection& section) {
  return entry_of(optimizer_kinds(), section.kind, &OptimizerKind::name);
}

}  // namespace lockstep
