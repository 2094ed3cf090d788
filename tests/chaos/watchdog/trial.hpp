// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run that is watched and struck once: what happens to it, and all that must hold then.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/watchdog/watch_campaign.hpp"
#include "tests/support/prelude.hpp"

#include <sys/types.h>

namespace lockstep::chaos {

// Blow to a watched run: its target, and its kind.

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

/// Draws a kill: of a hundred most are of one rank; of a hundred stops half are for good.
Blow::Kind random_kill(Dice& dice);
Blow::Kind random_stop(Dice& dice);

// Mapping of processes to ranks.

/// Processes that Open MPI's mpirun has started, by rank; empty where not all of them are there.
std::vector<pid_t> processes_by_rank(const std::vector<pid_t>& processes, int ranks);

// Statements of the ranks' watch, read back from its words.

struct Said {
  int verdicts = 0;
  std::string headline;  ///< text of the first verdict after "verdict: "
  std::set<int> initiating, cascading;
  std::set<int> silent, back, stuck;  ///< ranks that notices named so
  bool hears_nobody = false;          ///< a rank said so of itself

  bool has_notice() const { return !silent.empty() || !back.empty() || !stuck.empty() || hears_nobody; }
};

/// @param text  standard error of a job, or of one of its ranks; others' lines in between do not matter
Said read_said(const std::string& text);

// Meter of this machine's delays: a thread that wants to wake up again and again and compute a little. It
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

/// Threads that never rest, for as long as it lives.
class Hog {
 public:
  explicit Hog(unsigned threads);
  ~Hog();
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

// One run, and all that must hold then.

/// Settings that all trials of a campaign share.
struct TrialWorld {
  const ChaosJob& endless;       ///< for runs that do not survive
  const ChaosJob& finite;        ///< for those that do
  const std::string& last_line;  ///< printed by an undisturbed run of `finite`
  TrialTally& tally;
  const MachinePulse& pulse;
};

inline constexpr const char* kKilled = "one rank killed: named, initiating, the others left, nobody remained";
inline constexpr const char* kKilledTwo = "two killed at once: both initiating";
inline constexpr const char* kKilledAnother = "another killed soon after: the first is initiating";
inline constexpr const char* kStopped = "stopped for good: named, lost at the deadline, 71 in the shell";
inline constexpr const char* kWentOn = "stopped until it was named: it went on to the same SHA-256";
inline constexpr const char* kStoppedTooLate =
    "stopped after its last step: named in MPI_Finalize, 71 in the shell";
inline constexpr const char* kUnnoticed = "stopped shortly: no word, the same SHA-256";
inline constexpr const char* kCalm = "left alone: no word, the same SHA-256";
inline constexpr const char* kPipelines = "of all these, pipelines";
inline constexpr const char* kSaidBoth = "  of these: the second initiating, too (within 0.15 s)";
inline constexpr const char* kSaidCascading = "  of these: the second cascading";
inline constexpr const char* kSaidFirstOnly = "  of these: said before the second died";
inline constexpr const char* kExit137 = "exit code of mpirun after a kill: 137";
inline constexpr const char* kExit71 = "exit code of mpirun after a kill: 71";
inline constexpr const char* kLauncherHung = "mpirun hung after all ranks were gone, and was killed";
inline constexpr const char* kLauncherFirst =
    "a late machine: mpirun ended the others before they could speak";

/// @param directories  its own
/// @param story  says what was going on, for the message about a violation
/// @returns how many seconds the run took
/// @throws Violation
double run_trial(TrialWorld& world, const LifeDirectories& directories, Blow::Kind kind, const Dice& dice,
                 std::string& story);

}  // namespace lockstep::chaos
