// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What happens to a run that is watched: to whom, and how.
#pragma once

#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/dice.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>

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

}  // namespace lockstep::chaos
