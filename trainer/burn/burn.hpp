// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep burn`: is this machine fit to train on? Every rank trains what has a known answer, alone and with
/// others, and sends what all know. A result that differs is WRONG, a rank or link that is slower than others like it
/// is SLOW, and a check that could not be made is NOT TESTED.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/burn/burn_report.hpp"
#include "trainer/config/job.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::burn {

/// The names of --without.
inline constexpr std::array<std::string_view, 3> kChecks{"jobs", "links", "speed"};

/// A fault on purpose, for tests: one of kFaultKinds, which the rank commits from the start.
struct BurnFault {
  std::string kind;  ///< empty: none
  int rank = 0;
};
inline constexpr std::array<std::string_view, 5> kFaultKinds{"job", "message", "sum", "slow-rank",
                                                             "slow-link"};
/// "slow-link@2". @throws UsageError  what it must look like; or LOCKSTEP_ALLOW_INJECT is not 1
BurnFault parse_fault(const std::string& text);

/// "90s", "10m", "2h" as seconds. @throws UsageError
double parse_time(const std::string& text);

struct BurnOptions {
  int level = 1;
  double seconds = 55;  ///< from the start of the program to its report; at least one round is made
  int threads = 0;      ///< per rank; 0: its share of the cores that it may use
  std::vector<std::string> without;  ///< names of checks
  BurnFault fault;
  bool shows_progress = true;
  ParallelSection parallel;  ///< device, backend, ranks
};
/// Durations of the levels 1, 2 and 3.
inline constexpr std::array kSecondsOfLevels{55.0, 595.0, 4 * 3600.0};

/// Collective. @returns on rank 0 the report; on others an empty one
/// @throws AgreedError  the device or the backend cannot be used here
BurnReport run_burn(Communicator& comm, const BurnOptions& options);

}  // namespace lockstep::burn
