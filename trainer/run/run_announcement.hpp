// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What rank 0 says and records when a run starts.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/strategy.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace lockstep {

/// A few lines for people: model, data, ranks and devices, batch and buckets, optimiser and schedule.
std::vector<std::string> announcement(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                      const Communicator& comm, int hosts);

/// The "start" event of metrics.jsonl.
nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts);

}  // namespace lockstep
