// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Warm-up, then the schedule, which counts from the end of the warm-up: torch's SequentialLR.
#include "trainer/training/optimizers/schedule.hpp"

#include "common/spelling.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/portable_math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

bool by_epoch(const ScheduleSection& section) {
  return section.by == "epoch";
}

/// The job's total; or what the warm-up leaves of the run.
double total_of(const ScheduleSection& section, const RunSpan& run, std::int64_t warmup) {
  if (section.total > 0) return static_cast<double>(section.total);
  const auto steps = static_cast<double>(std::max<std::int64_t>(run.steps() - warmup, 1));
  return by_epoch(section) ? steps / static_cast<double>(run.steps_per_epoch) : steps;
}

}  // namespace

const std::vector<LrScalingRule>& lr_scaling_rules() {
  static const std::vector<LrScalingRule> rules = {
      {.name = "none", .keys = {}, .factor = [](double) { return 1.0; }},
      {.name = "linear", .keys = {{"base_batch"}}, .factor = [](double share) { return share; }},
      {.name = "sqrt", .keys = {{"base_batch"}}, .factor = [](double share) { return std::sqrt(share); }}};
  return rules;
}

double scaled_lr(const OptimizerSection& section, std::int64_t global_batch) {
  const double share = static_cast<double>(global_batch) / static_cast<double>(section.lr_scaling.base_batch);
  return section.lr *
         entry_of(lr_scaling_rules(), section.lr_scaling.rule, &LrScalingRule::name).factor(share);
}

const ScheduleKind& find_schedule(const ScheduleSection& section) {
  return entry_of(schedule_kinds(), section.kind, &ScheduleKind::name);
}

RateSchedule::RateSchedule(const ScheduleSection& section, double lr, const RunSpan& run)
    : section_(section),
      kind_(find_schedule(section)),
      lr_(lr),
      run_(run),
      warmup_(section.warmup_steps + section.warmup_epochs * run.steps_per_epoch),
      total_(total_of(section, run, warmup_)) {}

ScheduledValues RateSchedule::at(std::int64_t step) const {
  if (step >= warmup_) return after_warmup(step);
  ScheduledValues values = after_warmup(warmup_);
  const bool each_epoch = by_epoch(section_) && section_.warmup_epochs > 0;
  const std::int64_t passed = each_epoch ? step / run_.steps_per_epoch : step;
  const std::int64_t all = each_epoch ? section_.warmup_epochs : warmup_;
  const double done = static_cast<double>(passed) / static_cast<double>(all);
  values.lr *= section_.warmup_start + (1 - section_.warmup_start) * done;
  return values;
}

ScheduledValues RateSchedule::after_warmup(std::int64_t step) const {
  const std::int64_t since = step - warmup_;
  return kind_.at(section_, lr_, {by_epoch(section_) ? since / run_.steps_per_epoch : since, total_});
}

std::string RateSchedule::describe() const {
  std::string text = section_.kind;
  if (kind_.has_end)
    text += total_ == std::floor(total_) ? " over " + counted(static_cast<std::int64_t>(total_), section_.by)
                                         : fmt::format(" over {:.6g} {}s", total_, section_.by);
  else if (section_.kind != schedule_kinds().front().name)
    text += fmt::format(" by {}", section_.by);
  if (section_.warmup_epochs > 0)
    text += fmt::format(" after {} of warm-up", counted(section_.warmup_epochs, "epoch"));
  if (section_.warmup_steps > 0)
    text += fmt::format(" after {} of warm-up", counted(section_.warmup_steps, "step"));
  return text;
}

// The closed forms of torch.optim.lr_scheduler.

namespace {

double share_done(const SchedulePosition& position) {
  return std::min(static_cast<double>(position.at) / position.total, 1.0);
}

ScheduledValues multistep(const ScheduleSection& section, double lr, const SchedulePosition& position) {
  const auto passed = std::ranges::upper_bound(section.milestones, position.at) - section.milestones.begin();
  return {.lr = lr * integer_power(section.gamma, passed)};
}

std::optional<KeyComplaint> check_multistep(const ScheduleSection& section, double /*lr*/) {
  if (std::ranges::adjacent_find(section.milestones, std::greater_equal()) == section.milestones.end())
    return std::nullopt;
  return KeyComplaint{"train.schedule.milestones",
                      "train.schedule.milestones: each must be larger than the one before"};
}

ScheduledValues polynomial(const ScheduleSection& section, double lr, const SchedulePosition& position) {
  const double left = 1 - share_done(position);
  return {.lr = lr * (left > 0 ? portable_exp(section.power * portable_log(left)) : 0)};
}

ScheduledValues cosine(const ScheduleSection& section, double lr, const SchedulePosition& position) {
  const double height = (1 + portable_cos(std::numbers::pi * share_done(position))) / 2;
  return {.lr = section.min_lr + (lr - section.min_lr) * height};
}

std::optional<KeyComplaint> check_cosine(const ScheduleSection& section, double lr) {
  if (section.min_lr <= lr) return std::nullopt;
  return KeyComplaint{
      "train.schedule.min_lr",
      fmt::format("train.schedule.min_lr, {}, must not be above train.optimizer.lr, {}", section.min_lr, lr)};
}

// The 1cycle policy (Smith and Topin, 2017) of two phases, as torch.optim.lr_scheduler.OneCycleLR has it. The
// rate goes up to train.optimizer.lr and far down again, and momentum the other way round.

/// Between two values, at a share in [0, 1] of the way.
double anneal(const ScheduleSection& section, double from, double to, double share) {
  if (section.anneal == "linear") return from + (to - from) * share;
  return to + (from - to) / 2 * (1 + portable_cos(std::numbers::pi * share));
}

ScheduledValues one_cycle(const ScheduleSection& section, double lr, const SchedulePosition& position) {
  const double at = static_cast<double>(position.at), top = section.pct_start * position.total - 1;
  const double end = position.total - 1;
  const double start_lr = lr / section.div_factor, end_lr = start_lr / section.final_div_factor;
  ScheduledValues values;
  if (at <= top) {
    const double share = top > 0 ? at / top : 1;
    values.lr = anneal(section, start_lr, lr, share);
    values.momentum = anneal(section, section.max_momentum, section.base_momentum, share);
  } else {
    const double share = std::min((at - top) / (end - top), 1.0);
    values.lr = anneal(section, lr, end_lr, share);
    values.momentum = anneal(section, section.base_momentum, section.max_momentum, share);
  }
  if (!section.cycle_momentum) values.momentum.reset();
  return values;
}

/// Blames a momentum that is given, where two do not fit: the one that is not its default.
std::optional<KeyComplaint> check_one_cycle(const ScheduleSection& section, double /*lr*/) {
  if (!section.cycle_momentum || section.base_momentum <= section.max_momentum) return std::nullopt;
  const bool is_base = section.base_momentum != ScheduleSection().base_momentum;
  return KeyComplaint{
      is_base ? "train.schedule.base_momentum" : "train.schedule.max_momentum",
      fmt::format("train.schedule.base_momentum, {}, must not be above train.schedule.max_momentum, {}",
                  section.base_momentum, section.max_momentum)};
}

}  // namespace

const std::vector<ScheduleKind>& schedule_kinds() {
  using Section = ScheduleSection;
  using Position = SchedulePosition;
  static const std::vector<ScheduleKind> kinds = {
      {.name = "constant",
       .keys = {},
       .at = [](const Section&, double lr, const Position&) { return ScheduledValues{.lr = lr}; }},
      {.name = "step",
       .keys = {{.name = "step_size", .required = true}, {"gamma"}},
       .at =
           [](const Section& section, double lr, const Position& position) {
             return ScheduledValues{.lr = lr * integer_power(section.gamma, position.at / section.step_size)};
           }},
      {.name = "multistep",
       .keys = {{.name = "milestones", .required = true}, {"gamma"}},
       .at = multistep,
       .check = check_multistep},
      {.name = "exponential",
       .keys = {{.name = "gamma", .required = true}},
       .at =
           [](const Section& section, double lr, const Position& position) {
             return ScheduledValues{.lr = lr * integer_power(section.gamma, position.at)};
           }},
      {.name = "polynomial", .keys = {{"power"}, {"total"}}, .at = polynomial, .has_end = true},
      {.name = "cosine",
       .keys = {{"min_lr"}, {"total"}},
       .at = cosine,
       .has_end = true,
       .check = check_cosine},
      {.name = "one_cycle",
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
       .check = check_one_cycle},
  };
  return kinds;
}

}  // namespace lockstep
