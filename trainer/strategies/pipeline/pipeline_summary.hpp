// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run says of its pipeline: the stages at its start, and at its end what they took.
#pragma once

#include "comm/communicator.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"
#include "trainer/strategies/pipeline/stage_worker.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>

namespace lockstep {

StrategyDescription describe_pipeline(const Job& job, const Network& network, const StagePlan& plan);

/// Of one rank, since the run began.
struct PipelineMeasures {
  const StagePlan& plan;
  StageWorker& worker;
  int grains = 0;  ///< micro-batches of a full batch in this rank's pipeline
  std::int64_t bytes_sent = 0;
  double wall = 0;  ///< seconds in steps, without their updates
};

/// The share of the ranks' time in steps in which they computed nothing, beside the formulas; what was sent; and
/// of each stage what it holds and takes. Collective; on rank 0, and nothing if no step was taken.
StrategySummary summarise_pipeline(const PipelineMeasures& mine, Communicator& comm);

}  // namespace lockstep
