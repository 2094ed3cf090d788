// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The section `run` of a job: the directory of a run and what it keeps there.
#pragma once

#include "common/spelling.hpp"

#include <cstdint>
#include <string>

namespace lockstep {

/// The end of a run that cannot save a checkpoint.
enum class OnSaveError { kStop, kContinue };
template <>
inline constexpr Spellings<OnSaveError> kSpellings<OnSaveError>{
    {{"stop", OnSaveError::kStop}, {"continue", OnSaveError::kContinue}}};

/// Checkpoints to keep; the newest good one is always kept.
struct KeepSection {
  std::int64_t last = 3;         ///< the newest so many
  std::int64_t every_steps = 0;  ///< and those whose step is a multiple of this; 0: none
  bool best = true;  ///< and the one with the highest accuracy, on validation data where there are some
};

/// Steps of a run, counted from 1, with both ends.
struct TracedSteps {
  std::int64_t first = 0, last = 0;  ///< 0: no steps at all

  bool is_given() const { return last > 0; }
  std::int64_t count() const { return last - first + 1; }
  bool holds(std::int64_t step) const { return is_given() && first <= step && step <= last; }
};

/// Limit at which the traces of all ranks still fit in their memory.
inline constexpr std::int64_t kMostTracedSteps = 1000;

struct RunSection {
  std::string dir = "auto";                   ///< auto: runs/NAME of the job, or runs/NAME-2 ...
  std::int64_t checkpoint_every_steps = 500;  ///< 0: only at the end
  static constexpr std::int64_t kAutoLogs = -1;
  std::int64_t log_every_steps = kAutoLogs;  ///< log_spacing() says what auto is; 0: only epochs
  std::string resume = "auto";               ///< auto | never | a checkpoint directory
  OnSaveError on_save_error = OnSaveError::kStop;
  double max_seconds = 0;                   ///< save and stop after so long; 0: no limit
  std::int64_t print_loss_every_steps = 0;  ///< steps of an epoch between printed mean losses; 0: never
  bool print_shapes = false;                ///< sizes of input and output, on each rank and together
  bool trail = true;                        ///< fingerprints of each step in trail.bin
  bool curve = false;                       ///< draws the accuracy, on the terminal and as a picture
  bool report = true;                       ///< report.html at the end
  bool tensorboard = false;                 ///< event files for TensorBoard
  TracedSteps trace = {};                   ///< steps whose course is written to trace.pftrace
  KeepSection keep;

  bool starts_anew() const { return resume == "never"; }
  bool takes_newest() const { return resume == "auto"; }
};

}  // namespace lockstep
