// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// LARS: SGD with momentum and a rate for each tensor.
#include "kernels/optimizers/update_rule.hpp"
#include "trainer/config/optimizers/optimizer.hpp"

#include <utility>

namespace lockstep {
namespace {

class Lars final : public Optimizer {
 public:
  explicit Lars(OptimizerSection section) : section_(std::move(section)) {}

  UpdateRule rule() const override { return UpdateRule::kLars; }
  std::vector<std::string> buffers() const override { return {"momentum"}; }

  StepScalars scalars(const ScheduledValues& now, std::int64_t /*step*/) const override {
    return pack_scalars(LarsStep{.decay = static_cast<float>(section_.weight_decay),
                                 .rate = static_cast<float>(now.lr),
                                 .momentum = static_cast<float>(now.momentum.value_or(section_.momentum)),
                                 .trust = static_cast<float>(section_.trust_coefficient),
                                 .eps = static_cast<float>(section_.eps)});
  }

 private:
  OptimizerSection section_;
};

}  // namespace

OptimizerKind lars_kind() {
  return {.name = "lars",
          .keys = {{"lr", "1"}, {"momentum"}, {"weight_decay"}, {"eps"}, {"trust_coefficient"}},
          .make = [](const OptimizerSection& section) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Lars>(section);
          }};
}

}  // namespace lockstep
