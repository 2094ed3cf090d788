// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How late and how slow this machine is: a thread that wants to wake up again and again and compute a little, and
/// notes when it could not.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::chaos {

/// A deadline that was missed means something only beside this.
class MachinePulse {
 public:
  using Clock = std::chrono::steady_clock;

  MachinePulse();
  ~MachinePulse();
  MachinePulse(const MachinePulse&) = delete;
  MachinePulse& operator=(const MachinePulse&) = delete;

  /// The longest it came late since then, in seconds.
  double latest_since(Clock::time_point since) const;
  /// How many times longer than it needed its computing took since then: 1 on a machine that is idle.
  double slowness_since(Clock::time_point since) const;

 private:
  void run();

  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  struct Beat {
    Clock::time_point when;
    double late, wall, computed;  ///< seconds
  };
  std::vector<Beat> beats_;  ///< under mutex_
  std::thread thread_;
};

/// Where else it would run, it no longer does. Thread 0 is the calling one.
void keep_to_core(pid_t thread, int core);

/// Threads that never rest, for as long as it lives.
class Hog {
 public:
  /// @param core      the only one for all of them; -1: any
  /// @param niceness  as far as this process may
  explicit Hog(unsigned threads, int core = -1, int niceness = 0);
  ~Hog();
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::chaos
