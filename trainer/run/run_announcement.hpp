// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What rank 0 says and records when a run starts.
#pragma once

#include "comm/communicator.hpp"
#include "data/sampler.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/weight_update.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace lockstep {

/// A few lines for people: model, data, ranks and devices, batch and buckets, optimiser and schedule.
std::vector<std::string> announcement(const Job& job, const JobSetup& setup,
                                      const DistributedSampler& sampler, const Communicator& comm, int hosts,
                                      const WeightUpdate& update);

/// The "start" event of metrics.jsonl.
nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const Communicator& comm, int hosts,
                                   const WeightUpdate& update);

}  // namespace lockstep
