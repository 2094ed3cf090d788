// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stochastic gradient descent, plain, with momentum, or with Nesterov's.
#include "kernels/optimizers/update_rule.hpp"
#include "trainer/config/optimizers/optimizer.hpp"

#include <utility>

namespace lockstep {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(OptimizerSection section) : section_(std::move(section)) {}

  UpdateRule rule() const override {
    if (section_.momentum == 0) return UpdateRule::kSgd;
    return section_.nesterov ? UpdateRule::kSgdNesterov : UpdateRule::kSgdMomentum;
  }

  std::vector<std::string> buffers() const override {
    if (section_.momentum == 0) return {};
    return {"momentum"};
  }

  StepScalars scalars(const ScheduledValues& now, std::int64_t /*step*/) const override {
    return pack_scalars(SgdStep{.decay = static_cast<float>(section_.weight_decay),
                                .rate = static_cast<float>(now.lr),
                                .momentum = static_cast<float>(now.momentum.value_or(section_.momentum))});
  }

 private:
  OptimizerSection section_;
};

std::optional<KeyComplaint> check(const OptimizerSection& section) {
  if (!section.nesterov || section.momentum > 0) return std::nullopt;
  return KeyComplaint{"train.optimizer.nesterov",
                      "train.optimizer.nesterov needs momentum above 0; set train.optimizer.momentum"};
}

}  // namespace

OptimizerKind sgd_kind() {
  return {.name = "sgd",
          .keys = {{"lr"}, {"momentum"}, {"weight_decay"}, {"nesterov"}},
          .make = [](const OptimizerSection& section) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Sgd>(section);
          },
          .check = check};
}

}  // namespace lockstep
