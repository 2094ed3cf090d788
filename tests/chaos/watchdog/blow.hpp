// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What happens to a run that is watched: to whom, and how.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::chaos {

struct Blow {
  enum class Kind {
    kNone,         ///< it is left alone
    kKill,         ///< SIGKILL to one rank
    kKillTwo,      ///< to two at the same moment
    kKillAnother,  ///< to a second one a little later
    kStopForGood,  ///< SIGSTOP
    kStopAndGoOn,  ///< and SIGCONT when it has been named
    kStopShortly,  ///< and SIGCONT before any rank need notice
  };

  Kind kind = Kind::kNone;
  int victim = -1;                     ///< a rank
  int second = -1;                     ///< kKillTwo, kKillAnother
  std::chrono::milliseconds pause{0};  ///< kKillAnother: between the two; stops: until it goes on
  std::int64_t step = 0;               ///< falls when this one has been logged,
  std::chrono::microseconds delay{0};  ///< and a little later

  bool kills() const { return kind == Kind::kKill || kind == Kind::kKillTwo || kind == Kind::kKillAnother; }
  /// The run goes on to its end.
  bool is_survived() const { return !kills() && kind != Kind::kStopForGood; }
  std::set<int> victims() const;
  std::string describe() const;
};

/// 2 to 5 ranks under mpirun, a third of them a pipeline; with a timeout that fits the blow.
Placement watched_placement(Dice& dice, Blow::Kind kind);
/// Falls on any rank, at any of the first `most_steps` steps.
Blow random_blow(Dice& dice, Blow::Kind kind, int ranks, std::int64_t most_steps);

/// Of a hundred kills most are of one rank; of a hundred stops half are for good.
Blow::Kind random_kill(Dice& dice);
Blow::Kind random_stop(Dice& dice);

// Which process is which rank.

/// Of processes that Open MPI's mpirun has started: by rank; empty where not all of them are there.
std::vector<pid_t> processes_by_rank(const std::vector<pid_t>& processes, int ranks);

// What the ranks' watch has said, read back from its words.

struct Said {
  int verdicts = 0;
  std::string headline;  ///< of the first verdict, from behind "verdict: "
  std::set<int> initiating, cascading;
  std::set<int> silent, back, stuck;  ///< ranks that notices named so
  bool hears_nobody = false;          ///< a rank said so of itself

  bool has_notice() const { return !silent.empty() || !back.empty() || !stuck.empty() || hears_nobody; }
};

/// @param text  standard error of a job, or of one of its ranks; others' lines in between do not matter
Said read_said(const std::string& text);

/// "ranks 0-2, 5" as it stands at the start of `text`; empty: it is no list of ranks.
std::set<int> read_ranks(const std::string& text);

// How late and how slow this machine is: a thread that wants to wake up again and again and compute a little, and
// notes when it could not.

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
