// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One run that is watched and struck once, and all that must hold then.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/watchdog/blow.hpp"
#include "tests/chaos/watchdog/watch_campaign.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// What all trials of a campaign share.
struct TrialWorld {
  const ChaosJob& endless;       ///< for runs that do not survive
  const ChaosJob& finite;        ///< for those that do
  const std::string& last_line;  ///< of an undisturbed run of the latter
  TrialTally& tally;
  const MachinePulse& pulse;
};

inline constexpr const char* kKilled = "one rank killed: named, initiating, the others left, nobody remained";
inline constexpr const char* kKilledTwo = "two killed at once: both initiating";
inline constexpr const char* kKilledAnother = "another killed soon after: the first is initiating";
inline constexpr const char* kStopped = "stopped for good: named, lost at the deadline, 71 in the shell";
inline constexpr const char* kWentOn = "stopped until it was named: it went on to the same SHA-256";
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

class Trial {
 public:
  /// @param directories  its own
  Trial(TrialWorld& world, const LifeDirectories& directories, Blow::Kind kind, Dice dice);

  /// @throws Violation
  void run();
  /// What was going on, for the message about a violation.
  const std::string& story() const { return story_; }
  double seconds() const { return seconds_; }

 private:
  using Clock = MachinePulse::Clock;

  /// When what was seen first, in seconds since the blow.
  struct Seen {
    std::optional<double> named, verdict, others_gone;
  };

  void await_step(Attempt& attempt, std::int64_t step) const;
  void await_moment(Attempt& attempt) const;
  std::vector<pid_t> processes(const Attempt& attempt) const;
  void strike(const std::vector<pid_t>& pids) const;
  Seen watch(Attempt& attempt, const std::vector<pid_t>& pids);
  bool others_are_gone(const std::vector<pid_t>& pids) const;
  double since_blow() const;
  void took(const std::string& what, double allowed, double seconds);

  void check(const Attempt& attempt, const Seen& seen, int exit_code);
  void check_kill(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code);
  void check_initiating(const Said& said) const;
  void check_stop_for_good(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code);
  void check_survival(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code);
  void check_records(const Attempt& attempt) const;
  void count(const Said& said);

  TrialWorld& world_;
  const LifeDirectories& directories_;
  Dice dice_;
  Placement placement_;
  Blow blow_;
  std::string story_;
  Clock::time_point struck_{};
  bool saving_ = false;  ///< a save was under way then
  double seconds_ = 0;   ///< that the run took
};

}  // namespace lockstep::chaos
