// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a watchdog campaign counts: how often what was seen, and how long it took.
#pragma once

#include "tests/chaos/tally.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// Wrong and late are two things: what is wrong ends a campaign as broken; what is late may be the machine's fault.
struct Lateness {
  double allowed = 0;           ///< seconds
  double seconds = 0;           ///< that it took
  double machine_late = 0;      ///< by how much the machine woke up late meanwhile (MachinePulse)
  double machine_slowness = 1;  ///< and how often longer than it needs what computes took

  bool is_late() const { return seconds > allowed; }
  /// Late, although the machine was not: a chain of a rank, its watchdog, a launcher and this process wakes up
  /// several times, and each computes.
  bool is_without_excuse() const {
    return seconds > allowed * std::max(1.0, machine_slowness) + 5 * machine_late;
  }
};

/// May be used by several threads.
class TrialTally {
 public:
  Tally& counts() { return counts_; }
  /// @param what  "named after a kill"
  void took(const std::string& what, const Lateness& lateness);
  std::size_t without_excuse() const;
  std::string text() const;

 private:
  Tally counts_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Lateness>> times_;
};

}  // namespace lockstep::chaos
