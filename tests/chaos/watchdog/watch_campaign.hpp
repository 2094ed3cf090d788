// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole test of the ranks' watch: kills, stops and runs that are left alone beside a hog, then the tally.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::chaos {

struct WatchOptions {
  std::string program;  ///< path of lockstep
  std::int64_t kills = 40, stops = 10;
  double hours_with_hog = 0;  ///< of training, by the wall clock
  std::uint64_t seed = 1;
  std::string only;  ///< "kill-17": this one alone
  int jobs = 2;      ///< runs at the same time
  bool verbose = false;
};

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 if something was wrong, or late
/// although the machine was not.
int run_watch_campaign(const WatchOptions& options);

}  // namespace lockstep::chaos
