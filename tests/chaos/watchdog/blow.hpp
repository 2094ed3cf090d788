// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What happens to a run that is watched: to whom, and how.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
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
    kStopShortly,  ///< and SIGCONT before anybody need notice
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

}  // namespace lockstep::chaos
