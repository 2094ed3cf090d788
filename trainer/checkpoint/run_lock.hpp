// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keeps two jobs off one run directory.
#pragma once

#include "common/env.hpp"
#include "common/error.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// Owner of a run directory, as written into RUN/lock. A process is known by pid and start time, a machine by
/// its name and by the kernel's boot id.
struct LockOwner {
  std::string host;
  std::string boot_id;
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot: field 22 of /proc/PID/stat
  std::string started;            ///< UTC, for people
  std::string job;

  /// This process.
  static LockOwner self(const std::string& job = "");
};

/// True if both are on one machine, by its name or by its boot id. An empty boot id, which could not be read, is none.
bool on_same_host(const LockOwner& a, const LockOwner& b);

/// The owner named in the lock of a run directory; nothing: none. @throws IoError
std::optional<LockOwner> lock_owner(Env& env, const std::string& run_dir);

/// True while this process runs on this machine.
bool is_running(const LockOwner& owner);

/// Another job holds the run directory, or may.
class RunInUseError : public IoError {
 public:
  using IoError::IoError;
};

/// How long a lock that another job holds is waited for.
struct LockPatience {
  std::chrono::milliseconds limit{0};
  std::function<void(const std::string&)> say = {};  ///< gets one line before the first wait; may be empty
};

/// Held by rank 0 from before the first look at the checkpoints to the end of the run. Two guards: flock on
/// RUN/lock, which the kernel drops with its process; and the owner written in it, for file systems whose
/// locks do not reach other hosts. A lock whose owner is gone (this machine, and the process has ended or the
/// machine was restarted) is taken over. One of another host is not: it cannot be seen here whether that job is
/// still running; unless $LOCKSTEP_LOST_HOSTS names that host, with or without its domain.
///
/// Waits a little for a lock of this machine before it refuses. Ranks outlive a killed launcher by a second
/// or two, and a run that was told to stop saves first.
class RunLock {
 public:
  /// @throws RunInUseError naming the owner and the file to delete
  RunLock(Env& env, const std::string& run_dir, const std::string& job, const LockPatience& patience);
  /// Empties the file, so that another host may go on at once.
  ~RunLock();
  /// Checks that the directory of this name is still the locked one.
  /// @throws IoError  the directory, or its lock, was removed, renamed or replaced meanwhile
  void require_same_directory() const;

 private:
  Env& env_;
  std::string run_dir_;
  std::unique_ptr<FileClaim> claim_;
};

}  // namespace lockstep
