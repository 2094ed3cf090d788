// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Diagnosis of ranks: they look around, exchange their views, and faults are named. In full for 'lockstep
/// doctor', in short before every run.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// How a check ended.
struct CheckResult {
  std::string id, healthy;
  std::vector<Finding> findings;  ///< empty: healthy
  std::string missing = {};       ///< requirement that is absent, so that the check says nothing; empty: none
};

struct Diagnosis {
  std::vector<RankView> ranks;
  std::vector<CheckResult> results;
  std::vector<LatencyPoint> all_reduce;  ///< the probe; empty: of one rank

  bool healthy() const;
};

/// @param all  false: only those before every run
std::vector<CheckResult> run_checks(Views ranks, bool all);

/// Looks at everything. Collective. Ranks that differ in program, libraries, job, network or data, or have no
/// device, are findings, too.
/// @param data_too  loads the data of the job, to compare them
Diagnosis diagnose(Communicator& comm, const Job& job, bool data_too);

/// Before a run: rank 0 says in a line each what is wrong with hosts and launch, and nothing otherwise.
/// Collective; milliseconds.
void warn_before_run(Communicator& comm, const Job& job, const DeviceChoice& device);

}  // namespace lockstep
