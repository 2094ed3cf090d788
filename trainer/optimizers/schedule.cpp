// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Warm-up, then the schedule, which counts from the end of the warm-up: torch's SequentialLR.
#include "trainer/optimizers/schedule.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::vector<std::string_view> lr_scaling_rules() {
  return {"none", "linear", "sqrt"};
}

double scaled_lr(const OptimizerSection& section, std::int64_t global_batch) {
  const double share = static_cast<double>(global_batch) / static_cast<double>(section.lr_scaling.base_batch);
  if (section.lr_scaling.rule == "linear") return section.lr * share;
  if (section.lr_scaling.rule == "sqrt") return section.lr * std::sqrt(share);
  return section.lr;
}

const ScheduleKind& find_schedule(const ScheduleSection& section) {
  const auto& kinds = schedule_kinds();
  const auto kind = std::ranges::find(kinds, section.kind, &ScheduleKind::name);
  LOCKSTEP_CHECK(kind != kinds.end());
  return *kind;
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
    text += fmt::format(" over {:.6g} {}s", total_, section_.by);
  else if (section_.kind != schedule_kinds().front().name)
    text += fmt::format(" by {}", section_.by);
  if (section_.warmup_epochs > 0)
    text += fmt::format(" after {} of warm-up", counted(section_.warmup_epochs, "epoch"));
  if (section_.warmup_steps > 0)
    text += fmt::format(" after {} of warm-up", counted(section_.warmup_steps, "step"));
  return text;
}

}  // namespace lockstep
