// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole test of the ranks' watch. Kills, stops and runs that are left alone beside a hog, then the tally.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

struct WatchOptions : Options {
  WatchOptions() { jobs = 2; }

  std::int64_t kills = 40, stops = 10;
  double hours_with_hog = 0;  ///< training beside CPU hogs, by the wall clock
};

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 if something was wrong, or late
/// although the machine was not.
int run_watch_campaign(WatchOptions options);

// Counters of a watchdog campaign: how often each kind was seen, and how long it took.

/// Wrong and late are two things: what is wrong ends a campaign as broken. What is late may be the machine's fault.
struct Lateness {
  double allowed = 0;           ///< seconds
  double seconds = 0;           ///< that it took
  double machine_late = 0;      ///< by how much the machine woke up late meanwhile (MachinePulse)
  double machine_slowness = 1;  ///< and how often longer than it needs what computes took

  bool is_late() const { return seconds > allowed; }
  /// Late, although the machine was not. A chain of a rank, its watchdog, a launcher and this process wakes
  /// up several times, and each computes.
  bool is_without_excuse() const {
    return seconds > allowed * std::max(1.0, machine_slowness) + 5 * machine_late;
  }
};

/// May be used by several threads.
class TrialTally {
 public:
  explicit TrialTally(Tally& counts) : counts_(counts) {}

  Tally& counts() { return counts_; }
  /// @param what  "named after a kill"
  void took(const std::string& what, const Lateness& lateness);
  std::size_t without_excuse() const;
  std::string text() const;

 private:
  Tally& counts_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Lateness>> times_;
};

}  // namespace lockstep::chaos
