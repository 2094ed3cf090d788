// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The list of all schedules, with the closed forms of those that are one line: torch.optim.lr_scheduler's.
#include "kernels/numerics/portable_math.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace lockstep {

ScheduleKind one_cycle_schedule();

namespace {

double share_done(const SchedulePosition& position) {
  return std::min(static_cast<double>(position.at) / position.total, 1.0);
}

ScheduleKind constant_schedule() {
  return {
      .name = "constant", .keys = {}, .at = [](const ScheduleSection&, double lr, const SchedulePosition&) {
        return ScheduledValues{.lr = lr};
      }};
}

ScheduleKind step_schedule() {
  return {.name = "step",
          .keys = {{.name = "step_size", .required = true}, {"gamma"}},
          .at = [](const ScheduleSection& section, double lr, const SchedulePosition& position) {
            return ScheduledValues{.lr = lr * integer_power(section.gamma, position.at / section.step_size)};
          }};
}

ScheduleKind multistep_schedule() {
  return {
      .name = "multistep",
      .keys = {{.name = "milestones", .required = true}, {"gamma"}},
      .at =
          [](const ScheduleSection& section, double lr, const SchedulePosition& position) {
            const auto passed = std::ranges::upper_bound(section.milestones, position.at);
            return ScheduledValues{.lr = lr *
                                         integer_power(section.gamma, passed - section.milestones.begin())};
          },
      .check = [](const ScheduleSection& section, double) -> std::optional<KeyComplaint> {
        if (std::ranges::adjacent_find(section.milestones, std::greater_equal()) == section.milestones.end())
          return std::nullopt;
        return KeyComplaint{"train.schedule.milestones",
                            "train.schedule.milestones: each must be larger than the one before"};
      }};
}

ScheduleKind exponential_schedule() {
  return {.name = "exponential",
          .keys = {{.name = "gamma", .required = true}},
          .at = [](const ScheduleSection& section, double lr, const SchedulePosition& position) {
            return ScheduledValues{.lr = lr * integer_power(section.gamma, position.at)};
          }};
}

ScheduleKind polynomial_schedule() {
  return {.name = "polynomial",
          .keys = {{"power"}, {"total"}},
          .at =
              [](const ScheduleSection& section, double lr, const SchedulePosition& position) {
                const double left = 1 - share_done(position);
                const double factor = left > 0 ? portable_exp(section.power * portable_log(left)) : 0;
                return ScheduledValues{.lr = lr * factor};
              },
          .has_end = true};
}

ScheduleKind cosine_schedule() {
  return {.name = "cosine",
          .keys = {{"min_lr"}, {"total"}},
          .at =
              [](const ScheduleSection& section, double lr, const SchedulePosition& position) {
                constexpr double kPi = 3.14159265358979323846;
                const double height = (1 + portable_cos(kPi * share_done(position))) / 2;
                return ScheduledValues{.lr = section.min_lr + (lr - section.min_lr) * height};
              },
          .has_end = true,
          .check = [](const ScheduleSection& section, double lr) -> std::optional<KeyComplaint> {
            if (section.min_lr <= lr) return std::nullopt;
            return KeyComplaint{
                "train.schedule.min_lr",
                fmt::format("train.schedule.min_lr, {}, must not be above train.optimizer.lr, {}",
                            section.min_lr, lr)};
          }};
}

}  // namespace

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kinds = {
      constant_schedule(),   step_schedule(),   multistep_schedule(), exponential_schedule(),
      polynomial_schedule(), cosine_schedule(), one_cycle_schedule()};
  return kinds;
}

}  // namespace lockstep
