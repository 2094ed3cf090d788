// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One run in which a rank is slow, or waits for a processor, or all are even on a machine that is full: who is named?
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/dice.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::chaos {

enum class Slowness {
  kNone,     ///< nobody is slow; programs that never rest are on every core
  kSleeps,   ///< a rank sleeps for a tenth of each step
  kBusy,     ///< it computes for a tenth longer
  kCrowded,  ///< it shares its core with three programs that never rest, and the others do not
};

/// A rank that is slow is named in so many steps.
inline constexpr std::int64_t kNamedWithinSteps = 100;

class StragglerTrial {
 public:
  /// @param directories  its own
  StragglerTrial(std::string program, const LifeDirectories& directories, Slowness slowness, Dice dice);

  /// @throws Violation
  void run();
  const std::string& story() const { return story_; }
  /// Of a rank that was slow: the steps until it was named.
  std::optional<std::int64_t> steps_until_named() const { return steps_until_named_; }
  /// Some rank was said to wait for a processor.
  bool said_crowded() const { return !crowded_.empty(); }

 private:
  bool is_slow() const { return slowness_ == Slowness::kSleeps || slowness_ == Slowness::kBusy; }
  std::vector<std::string> settings() const;
  std::vector<std::string> command() const;
  void crowd(const ChildProcess& process) const;
  void read_said();
  void check_slow();
  void check_crowded() const;

  std::string program_;
  const LifeDirectories& directories_;
  Slowness slowness_;
  int ranks_ = 2, victim_ = -1;
  std::int64_t step_ = 0;
  std::string story_, said_;
  std::set<int> named_, crowded_;
  std::optional<std::int64_t> steps_until_named_;
};

}  // namespace lockstep::chaos
