// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints of a run: written while training goes on, and which of them stay.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/state.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Which checkpoints of a run stay: the job's `run.keep`.

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

/// Removes what the policy does not keep. The newest good checkpoint is never among it, whatever the policy says; nor
/// is one that cannot be read now, or that is not the run's own (is_own_checkpoint).
/// @param known  is asked before the disk, and learns what was read
/// @returns how many. @throws IoError
std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy,
                              KnownCheckpoints& known);
/// The same for callers that know nothing.
std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy);

/// The highest test accuracy of the checkpoints there are; -1 if none has one. Damaged ones do not count, and
/// none that cannot be read.
double best_accuracy(Env& env, const std::string& run_dir);

// Writes checkpoints while training goes on.

/// Takes a snapshot by value and writes it on a background thread, or on the caller's where the system gives no other;
/// afterwards removes what the policy does
/// not keep. At most one save is in flight: the next one waits for it, so that a checkpoint that was asked
/// for is always written.
///
/// An error of a background save is thrown once, by the next save() or finish(), in place of what that
/// call was to do: save() has then not taken the new snapshot. Called by one thread.
class AsyncCheckpointer {
 public:
  /// @param before_each  runs on the background thread before each save: what must be on disk before the
  /// checkpoint is
  AsyncCheckpointer(Env& env, std::string run_dir, const KeepPolicy& keep,
                    std::function<void()> before_each = {});
  /// Waits for the save in flight. Its error, if any, is lost: call finish() before.
  ~AsyncCheckpointer();
  AsyncCheckpointer(const AsyncCheckpointer&) = delete;
  AsyncCheckpointer& operator=(const AsyncCheckpointer&) = delete;

  /// Waits for the save in flight, then starts this one.
  void save(CheckpointState state);
  /// Returns when nothing is in flight: the last save survives a power loss.
  void finish();
  /// Waits, but not longer than `limit`. True if nothing is in flight any more; finish() then returns at
  /// once.
  bool finished_within(std::chrono::milliseconds limit) const;

 private:
  void write(const CheckpointState& state);

  Env& env_;
  std::string run_dir_;
  KeepPolicy keep_;
  std::function<void()> before_each_;
  KnownCheckpoints known_;  ///< used by the save in flight only
  std::future<void> in_flight_;
};

}  // namespace lockstep
