// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One run from its first start to its end, disturbed on the way as often as the dice say.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/dice.hpp"
#include "tests/chaos/disturbance.hpp"
#include "tests/chaos/record_damage.hpp"
#include "tests/chaos/reference.hpp"
#include "tests/chaos/tally.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// What all lives of one test share.
struct World {
  const ChaosJob& job;
  const Result& reference;
  const std::string& reference_hash;  ///< the last line of the undisturbed run
  const Disturbance& disturbance;
  Tally& tally;
  Rounds& rounds;
  std::function<void(const std::string&)> tell;  ///< gets the story of every attempt; may be empty
};

inline constexpr const char* kRunsCompared = "finished and compared: all bytes equal";
inline constexpr const char* kResumes = "went on from a checkpoint";
inline constexpr const char* kOtherRanks = "on another number of ranks than before";

class Life {
 public:
  Life(World& world, const LifeDirectories& directories, const Dice& dice);

  /// Starts the job again and again until it is done, then compares it with the undisturbed run.
  /// @throws Violation at the first broken promise
  void run();

  /// What was going on last, for the message about a violation.
  const std::string& story() const { return story_; }

 private:
  bool attempt();
  Ending disturb(Attempt& attempt);
  Ending let_finish(Attempt& attempt);
  void check_after(const Attempt& attempt, Ending ending);
  void check_resume(const Attempt& attempt, const RunFacts& after);
  void verify_checkpoints();
  void compare_kept(const std::vector<std::string>& kept, std::vector<std::string>* differences);
  void compare(const Attempt& attempt);

  World& world_;
  const LifeDirectories& directories_;
  Dice dice_;
  std::string story_;
  std::int64_t earlier_runs_ = 0;  ///< previous-N directories
  int last_ranks_ = 0;
  RecordDamage damage_;
};

}  // namespace lockstep::chaos
