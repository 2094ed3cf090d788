// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adam, and AdamW, whose weight decay does not pass through the gradient.
#include "kernels/numerics/portable_math.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "trainer/config/optimizers/optimizer.hpp"

#include <cmath>
#include <utility>

namespace lockstep {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(OptimizerSection section, bool decoupled) : section_(std::move(section)), decoupled_(decoupled) {}

  UpdateRule rule() const override { return decoupled_ ? UpdateRule::kAdamW : UpdateRule::kAdam; }
  std::vector<std::string> buffers() const override { return {"exp_avg", "exp_avg_sq"}; }

  StepScalars scalars(const ScheduledValues& now, std::int64_t step) const override {
    const double beta1 = now.momentum.value_or(section_.betas[0]), beta2 = section_.betas[1];
    const double decay = decoupled_ ? now.lr * section_.weight_decay : section_.weight_decay;
    return pack_scalars(
        AdamStep{.decay = static_cast<float>(decay),
                 .rate = static_cast<float>(now.lr / (1 - integer_power(beta1, step + 1))),
                 .one_minus_beta1 = static_cast<float>(1 - beta1),
                 .beta2 = static_cast<float>(beta2),
                 .one_minus_beta2 = static_cast<float>(1 - beta2),
                 .correction2 = static_cast<float>(1 / std::sqrt(1 - integer_power(beta2, step + 1))),
                 .eps = static_cast<float>(section_.eps)});
  }

 private:
  OptimizerSection section_;
  bool decoupled_;
};

template <bool kDecoupled>
std::unique_ptr<Optimizer> make(const OptimizerSection& section) {
  return std::make_unique<Adam>(section, kDecoupled);
}

}  // namespace

OptimizerKind adam_kind() {
  return {
      .name = "adam", .keys = {{"lr", "0.001"}, {"betas"}, {"eps"}, {"weight_decay"}}, .make = make<false>};
}

OptimizerKind adamw_kind() {
  return {.name = "adamw",
          .keys = {{"lr", "0.001"}, {"betas"}, {"eps"}, {"weight_decay", "0.01"}},
          .make = make<true>};
}

}  // namespace lockstep
