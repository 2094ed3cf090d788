// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// When a run must stop by itself: the job's own limit, or the end of its Slurm allocation.
#pragma once

#include "common/clock.hpp"

#include <cstdint>
#include <optional>

namespace lockstep {

/// Reached once `max_seconds` have passed since `start` (0: no limit), or kMarginSeconds before the Unix time
/// `allocation_end`, whichever comes first.
class TimeLimit {
 public:
  /// Enough to finish a step and write a checkpoint before Slurm sends SIGTERM and, 30 s later, SIGKILL.
  static constexpr double kMarginSeconds = 60;

  TimeLimit(Clock::time_point start, double max_seconds, std::optional<std::int64_t> allocation_end);

  bool reached() const { return Clock::now() >= end_; }

 private:
  Clock::time_point end_;
};

/// Whether this Unix time is in the past.
bool has_passed(std::int64_t unix_seconds);

/// $SLURM_JOB_END_TIME, which Slurm sets to the end of the allocation in Unix seconds. Nothing if it is not
/// set or not a number.
std::optional<std::int64_t> slurm_allocation_end();

/// The same, unless it has passed: then the variable was left by another job, or the administrator lets jobs
/// overrun, and it says nothing; rank 0 warns of it.
std::optional<std::int64_t> allocation_end_ahead();

}  // namespace lockstep
