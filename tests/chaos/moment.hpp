// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// When to strike: while the run starts, at some step, or in the middle of a save.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

struct KillTime {
  enum class Kind { kStartUp, kStep, kSave };
  Kind kind = Kind::kStartUp;
  std::int64_t step = 0;              ///< wait until this one is logged (not for kStartUp)
  std::chrono::microseconds delay{};  ///< and then so long

  std::string describe() const;
};

/// Draws a moment: a quarter in the first 0.7 s, a third during a save, the others anywhere. Steps are
/// counted from `first_step`, where the run goes on.
KillTime random_moment(Dice& dice, std::int64_t first_step);

/// Returns when the moment has come: true; or when the process has ended: false.
/// @throws Violation if neither happens and no step is logged in two minutes
bool await(const KillTime& moment, ChildProcess& process, const std::string& run_dir);

// View of a run directory at any moment, for a reader.

struct RunFacts {
  std::int64_t newest_checkpoint = 0;  ///< the highest step that has its final name; 0: none
  std::int64_t last_logged = 0;        ///< the last step in metrics.jsonl; 0: none
  bool saving = false;                 ///< a half-written checkpoint lies there
  bool pruning = false;                ///< a half-removed one
  std::string metrics;                 ///< the bytes of metrics.jsonl
};

/// Looks at files only; the run may go on meanwhile.
RunFacts look_at(const std::string& run_dir);

/// The last step in metrics.jsonl, from its last lines only: cheap enough to ask a thousand times a second.
std::int64_t last_logged_step(const std::string& run_dir);

/// True if a checkpoint is being written at this moment.
bool is_saving(const std::string& run_dir);

// The undisturbed run, and how another one differs from it.

/// Records of a run that were never damaged.
struct WholeRecords {
  bool metrics = true, trail = true;
};

/// Files that must be equal, byte for byte, however often a run was disturbed.
class Result {
 public:
  /// Reads a finished run of so many steps. @throws Violation if a whole part is missing or no JSON
  Result(const std::string& run_dir, std::int64_t steps, WholeRecords whole = {});

  /// One line for each difference: which file, where first. Empty: equal.
  /// Of records that were damaged on the way only what is left must be the same.
  std::vector<std::string> differences_from(const Result& reference, WholeRecords whole) const;

  /// Directories in RUN/checkpoints, in order.
  const std::vector<std::string>& checkpoints() const { return checkpoints_; }

 private:
  std::vector<std::string> checkpoints_;
  std::string weights_, optimizer_;                   ///< bytes of the last checkpoint's files
  std::string trail_;                                 ///< bytes of trail.bin
  std::vector<nlohmann::json> metrics_, kept_aside_;  ///< without times and rank facts
};

}  // namespace lockstep::chaos
