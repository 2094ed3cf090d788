// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writes checkpoints while training goes on.
#pragma once

#include "common/files/env.hpp"
#include "trainer/checkpoint/retention.hpp"
#include "trainer/checkpoint/state.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <string>

namespace lockstep {

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
  bool busy() const;

 private:
  void start(CheckpointState state);
  void write(const CheckpointState& state);

  Env& env_;
  std::string run_dir_;
  KeepPolicy keep_;
  std::function<void()> before_each_;
  KnownCheckpoints known_;  ///< used by the save in flight only
  std::future<void> in_flight_;
};

}  // namespace lockstep
