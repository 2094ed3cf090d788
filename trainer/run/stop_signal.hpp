// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU ask for a stop at the end of the current step.
#pragma once

#include "common/machine.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace lockstep {

/// The end that the first signal leads to.
enum class OnStop {
  kSave,    ///< under Open MPI text that mpirun no longer reads is dropped, or nothing would be saved
  kReport,  ///< a report, and nothing is saved
};

/// Installs the handlers. Call once, before anything that takes time: Open MPI leaves these signals alone.
///
/// The first signal is noted, and rank 0 says at once that it stops. Signals close to each other are one
/// (see StopRequests). One that shows that patience has run out ends the process with 128 + its
/// number and nothing saved, and says so: exit code 75 is only for what was saved.
///
/// SIGXCPU comes every second once the soft limit on processor time is passed: only the first one counts.
///
/// A SIGHUP that was ignored when the program started (nohup) stays ignored. SIGPIPE is ignored from now on:
/// a run goes on when the reader of its output has gone.
void catch_stop_signals(OnStop then);

/// True if a stop was requested since the process started.
bool stop_requested() noexcept;

/// The signal that asked for it, 0 if none.
int stop_signal() noexcept;

/// "SIGTERM", for SIGXCPU with its meaning; "a signal" for one that is not caught here.
const char* stop_signal_name(int signal) noexcept;

// When a run must stop by itself: the job's own limit, or the end of its Slurm allocation.

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

/// $SLURM_JOB_END_TIME, which Slurm sets to the end of the allocation in Unix seconds. Nothing if it is not
/// set or not a number. Nothing, and rank 0 warns, if it has passed: either another job left the variable, or the
/// administrator lets jobs overrun.
std::optional<std::int64_t> allocation_end_ahead();

// Counting of stop requests: repetitions of one request, and a second one that ends the wait.

/// Counts requests to stop. Launchers repeat themselves: GNU timeout signals its child and then the child's
/// group, a Slurm job's ranks may hear from Slurm and from its script. So whatever arrives within kTogether
/// of a request is that request. A later one only leaves at once when kGrace has passed since the first, or
/// when it is the third.
///
/// Lock-free, so that a signal handler may use it, on several threads at once.
class StopRequests {
 public:
  static constexpr std::int64_t kTogetherNs = 1'000'000'000;
  static constexpr std::int64_t kGraceNs = 5'000'000'000;
  static constexpr int kLeavingAt = 3;

  enum class Effect {
    kStop,      ///< the first request
    kSame,      ///< one that is already counted
    kPatience,  ///< another one, too early to count as more than the first
    kLeave,     ///< leave now, saved or not
  };

  /// @param now  nanoseconds of a monotonic clock, not 0
  Effect add(std::int64_t now) noexcept {
    std::int64_t none = 0;
    if (first_.compare_exchange_strong(none, now)) return Effect::kStop;
    const std::int64_t first = first_.load();
    std::int64_t last = last_.load();
    if (now - (last == 0 ? first : last) < kTogetherNs) return Effect::kSame;
    if (!last_.compare_exchange_strong(last, now)) return Effect::kSame;  // another thread has counted it
    const bool leave = ++repeats_ + 1 >= kLeavingAt || now - first >= kGraceNs;
    return leave ? Effect::kLeave : Effect::kPatience;
  }

 private:
  std::atomic<std::int64_t> first_{0}, last_{0};  ///< 0: none; last_: of the repeats that were counted
  std::atomic<int> repeats_{0};
  static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
};

}  // namespace lockstep
