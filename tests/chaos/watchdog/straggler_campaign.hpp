// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole test of who is named for holding the others up: ranks that are slow, and ranks that are not.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::chaos {

struct StragglerOptions {
  std::string program;                ///< path of lockstep
  std::int64_t slow = 20, even = 20;  ///< runs with a rank that is slow; with none, on a full machine
  std::int64_t crowded = 5;           ///< with a rank that waits for a processor
  std::uint64_t seed = 1;
  std::string only;  ///< "slow-3": this one alone
  bool verbose = false;
};

/// Prints the tally, and every run in which the wrong one was named, or none. Returns 0, or 1 after such a run.
int run_straggler_campaign(const StragglerOptions& options);

}  // namespace lockstep::chaos
