// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Schedules, as the rest of the program sees them: a learning rate for each step of the run.
#pragma once

#include "trainer/training/optimizers/sections.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Values that a schedule decides for one step.
struct ScheduledValues {
  double lr = 0;
  std::optional<double> momentum = {};  ///< nothing: as the job has it. A momentum of 0 stays 0
};

/// Position in a schedule, in epochs or steps as its `by` says, after its warm-up.
struct SchedulePosition {
  std::int64_t at = 0;  ///< from 0
  double total = 0;     ///< the schedule's length
};

/// A member of the catalogue.
struct ScheduleKind {
  std::string_view name;
  std::vector<MemberKey> keys;
  /// Scheduled values at a position. @param lr  the rate that results from train.optimizer.lr
  ScheduledValues (*at)(const ScheduleSection&, double lr, const SchedulePosition&);
  /// True if it has an end, `total`, which is that of the run where it is not given.
  bool has_end = false;
  std::optional<KeyComplaint> (*check)(const ScheduleSection&, double lr) = nullptr;
};

/// All of them: trainer/training/optimizers/schedule.cpp.
const std::vector<ScheduleKind>& schedule_kinds();

const ScheduleKind& find_schedule(const ScheduleSection& section);

/// How the rate follows from the global batch.
struct LrScalingRule {
  std::string_view name;
  std::vector<MemberKey> keys;
  double (*factor)(double share);  ///< multiplies the rate; share: global_batch / base_batch
};
const std::vector<LrScalingRule>& lr_scaling_rules();
/// The rate for this global batch.
double scaled_lr(const OptimizerSection& section, std::int64_t global_batch);

/// How long a run is.
struct RunSpan {
  std::int64_t epochs = 0, steps_per_epoch = 0;
  std::int64_t steps() const { return epochs * steps_per_epoch; }
};

/// The one place that the learning rate of a step comes from.
class RateSchedule {
 public:
  /// @param lr  of the job's global batch, see scaled_lr()
  RateSchedule(const ScheduleSection& section, double lr, const RunSpan& run);

  /// @param step  optimiser steps taken before this one. A run that goes on after the end of its schedule
  /// stays at its last value
  ScheduledValues at(std::int64_t step) const;
  /// For people: "cosine over 9 epochs after 1 epoch of warm-up".
  std::string describe() const;
  std::int64_t warmup_steps() const { return warmup_; }

 private:
  ScheduledValues after_warmup(std::int64_t step) const;

  ScheduleSection section_;
  const ScheduleKind& kind_;
  double lr_;
  RunSpan run_;
  std::int64_t warmup_;  ///< steps
  double total_;
};

}  // namespace lockstep
