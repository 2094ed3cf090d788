// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What must fit before the ranks of a pipeline allocate anything.
#pragma once

#include "data/sampler.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"

namespace lockstep {

extern const StrategySetup kPipelineSetup;

/// The share of a batch of a rank's pipeline.
DistributedSampler::Options pipeline_sampling(const Job& job, const Dataset& data, const StagePlan& plan,
                                              int rank);

}  // namespace lockstep
