// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which checkpoints of a run stay: the job's `run.keep`.
#pragma once

#include "common/files/env.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct KeepPolicy {
  std::int64_t last = 3;         ///< the newest so many; at least 1
  std::int64_t every_steps = 0;  ///< and those whose step is a multiple of this; 0: none
  bool best = true;              ///< and the one with the highest test accuracy, the older among equals
};

/// What a process knows of checkpoints without reading them back, because it wrote or read them before.
/// Pruning after each save would otherwise cost more than the save.
struct KnownCheckpoints {
  std::map<std::string, std::optional<double>> accuracy;  ///< path → test accuracy
  std::string good;                                       ///< path of one that is whole: just written
};

/// The paths to remove, oldest first. The newest good checkpoint is never among them, whatever the policy
/// says; nor is one that cannot be read now, or that is not the run's own (is_own_checkpoint).
/// @param known  is asked before the disk, and learns what was read
std::vector<std::string> select_for_removal(Env& env, const std::string& run_dir, const KeepPolicy& policy,
                                            KnownCheckpoints& known);

/// Removes them. @returns how many. @throws IoError
std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy,
                              KnownCheckpoints& known);

/// The highest test accuracy of the checkpoints there are; -1 if none has one. Damaged ones do not count, and
/// none that cannot be read.
double best_accuracy(Env& env, const std::string& run_dir);

/// The same for callers that know nothing.
std::vector<std::string> select_for_removal(Env& env, const std::string& run_dir, const KeepPolicy& policy);
std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy);

}  // namespace lockstep
