// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The checkpoints of a run: their names, the newest good one, and what may be removed.
#pragma once

#include "trainer/checkpoint/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kCheckpointsDirectory = "checkpoints";
inline constexpr const char* kTemporaryPrefix = ".tmp-";  ///< being written, or being removed
inline constexpr const char* kReplacedSuffix =
    ".replaced";  ///< moved aside while its successor takes its name
inline constexpr const char* kMomentumPrefix = "momentum.";  ///< of tensors in optimizer.safetensors

/// "step-00001200"
std::string checkpoint_name(std::int64_t step);
/// The step of "step-00001200", which may carry kReplacedSuffix.
std::optional<std::int64_t> checkpoint_step(const std::string& name);

struct CheckpointEntry {
  std::int64_t step = 0;
  std::string path;
};

/// All checkpoints by name, newest first; nothing is verified. Empty if there is no such run.
std::vector<CheckpointEntry> list_checkpoints(Env& env, const std::string& run_dir);

struct FoundCheckpoint {
  std::string path;
  CheckpointState state;
};

/// The newest checkpoint that verifies. `on_damaged` is told about each newer one, in one line that names it.
std::optional<FoundCheckpoint> find_latest(Env& env, const std::string& run_dir,
                                           const std::function<void(const std::string&)>& on_damaged);

/// What a command is given: a checkpoint's directory, or a run's, whose newest good checkpoint is meant.
/// @throws MissingDataError if it is neither
std::string resolve_checkpoint(Env& env, const std::string& path,
                               const std::function<void(const std::string&)>& on_damaged);

/// Removes the checkpoints of steps after `step`, which a resumed run will write again (-1: all of them, for
/// a run that starts afresh).
void remove_checkpoints_after(Env& env, const std::string& run_dir, std::int64_t step);

/// Removes checkpoints such that a crash on the way leaves none of them half there under its name.
void remove_checkpoints(Env& env, const std::string& run_dir, const std::vector<std::string>& paths);

/// Removes what interrupted saves and removals left. Call it with the run's lock held and no save in flight.
void remove_leftovers(Env& env, const std::string& run_dir);

}  // namespace lockstep
