// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Around the steps of a pipeline: what must fit before its ranks allocate, what a run says of its stages, and which
/// of them is dead.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/memory_need.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/strategies/stage_engine.hpp"
#include "trainer/strategies/stage_plan.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>

namespace lockstep {

// What must fit before the ranks of a pipeline allocate anything.

extern const StrategySetup kPipelineSetup;

/// The share of a batch of a rank's pipeline.
DistributedSampler::Options pipeline_sampling(const Job& job, const Dataset& data, const StagePlan& plan,
                                              int rank);

// How much memory a pipeline takes: from sizes alone, before anything is allocated.

/// Of one rank of the job, on its host and, where it has one, on its GPU. The data set on the host is no part of it.
/// @param gpu  of this rank, whose like all have; null: they compute on CPUs
TrainingMemory pipeline_memory(const Job& job, const Network& network, const DataSizes& data,
                               const StagePlan& plan, const Gpu* gpu, int rank);

/// Asks whether that fits: on the host for all ranks there, on the GPU for this one.
/// @throws MemoryError, DeviceError  it does not
/// @throws ShapeError                the network is larger than GPU kernels can number
void require_pipeline_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const StagePlan& plan, const DeviceChoice& device, const Communicator& comm);

// What a run says of its pipeline: the stages at its start, and at its end what they took.

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

// Which stage is dead, when ranks have waited in vain for their neighbours.

/// A rank that waits for a dead stage lets others wait: all give up at about the same time, and each knows only its
/// neighbour. So every rank that gives up tells all others that it lives, and listens to them for a moment. Where ranks
/// are watched (Communicator::watch) there is nothing to find out.
/// @throws PeerLostError  that names the stages and ranks that were silent; or `error`, if none was
[[noreturn]] void throw_silent_stages(const PeerLostError& error, const StagePlan& plan, Communicator& comm);

}  // namespace lockstep
