// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The 1cycle policy (Smith and Topin, 2017) as torch.optim.lr_scheduler.OneCycleLR has it, of two phases:
/// the rate goes up to train.optimizer.lr and far down again, and momentum the other way round.
#include "kernels/numerics/portable_math.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

/// Between two values, at a share in [0, 1] of the way.
double anneal(const ScheduleSection& section, double from, double to, double share) {
  constexpr double kPi = 3.14159265358979323846;
  if (section.anneal == "linear") return from + (to - from) * share;
  return to + (from - to) / 2 * (1 + portable_cos(kPi * share));
}

ScheduledValues one_cycle(const ScheduleSection& section, double lr, const SchedulePosition& position) {
  const double at = static_cast<double>(position.at), top = section.pct_start * position.total - 1;
  const double end = std::max(position.total - 1, top);
  const double start_lr = lr / section.div_factor, end_lr = start_lr / section.final_div_factor;
  ScheduledValues values;
  if (at <= top) {
    const double share = top > 0 ? at / top : 1;
    values.lr = anneal(section, start_lr, lr, share);
    values.momentum = anneal(section, section.max_momentum, section.base_momentum, share);
  } else {
    const double share = end > top ? std::min((at - top) / (end - top), 1.0) : 1;
    values.lr = anneal(section, lr, end_lr, share);
    values.momentum = anneal(section, section.base_momentum, section.max_momentum, share);
  }
  if (!section.cycle_momentum) values.momentum.reset();
  return values;
}

/// Of two momentums that do not fit, at least one is given: the one that is not its default.
std::optional<KeyComplaint> check(const ScheduleSection& section, double /*lr*/) {
  if (!section.cycle_momentum || section.base_momentum <= section.max_momentum) return std::nullopt;
  const bool is_base = section.base_momentum != ScheduleSection().base_momentum;
  return KeyComplaint{
      is_base ? "train.schedule.base_momentum" : "train.schedule.max_momentum",
      fmt::format("train.schedule.base_momentum, {}, must not be above train.schedule.max_momentum, {}",
                  section.base_momentum, section.max_momentum)};
}

}  // namespace

ScheduleKind one_cycle_schedule() {
  return {.name = "one_cycle",
          .keys = {{"by", "step"},
                   {"total"},
                   {"pct_start"},
                   {"div_factor"},
                   {"final_div_factor"},
                   {"anneal"},
                   {"cycle_momentum"},
                   {"base_momentum"},
                   {"max_momentum"}},
          .at = one_cycle,
          .has_end = true,
          .check = check};
}

}  // namespace lockstep
