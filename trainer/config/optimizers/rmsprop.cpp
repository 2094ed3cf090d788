// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RMSprop, with or without momentum.
#include "kernels/optimizers/update_rule.hpp"
#include "trainer/config/optimizers/optimizer.hpp"

#include <utility>

namespace lockstep {
namespace {

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(OptimizerSection section) : section_(std::move(section)) {}

  UpdateRule rule() const override {
    return section_.momentum == 0 ? UpdateRule::kRmsprop : UpdateRule::kRmspropMomentum;
  }

  std::vector<std::string> buffers() const override {
    if (section_.momentum == 0) return {"square_avg"};
    return {"square_avg", "momentum"};
  }

  StepScalars scalars(const ScheduledValues& now, std::int64_t /*step*/) const override {
    return pack_scalars(
        RmspropStep{.decay = static_cast<float>(section_.weight_decay),
                    .rate = static_cast<float>(now.lr),
                    .alpha = static_cast<float>(section_.alpha),
                    .one_minus_alpha = static_cast<float>(1 - section_.alpha),
                    .eps = static_cast<float>(section_.eps),
                    .momentum = static_cast<float>(now.momentum.value_or(section_.momentum))});
  }

 private:
  OptimizerSection section_;
};

}  // namespace

OptimizerKind rmsprop_kind() {
  return {.name = "rmsprop",
          .keys = {{"lr", "0.01"}, {"momentum", "0"}, {"weight_decay"}, {"eps"}, {"alpha"}},
          .make = [](const OptimizerSection& section) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Rmsprop>(section);
          }};
}

}  // namespace lockstep
