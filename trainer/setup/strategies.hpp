// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the name in the job file to a strategy at work; a row of strategies.cpp for each.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/verify/rank_checks.hpp"

#include <memory>
#include <string_view>

namespace lockstep {

struct StrategyEntry {
  std::string_view name;  ///< a name in trainer/config/job_values.hpp
  const StrategySetup& setup;
  /// Collective. Borrows everything, which set_up() made with `setup`.
  std::unique_ptr<ParallelStrategy> (*make)(const JobSetup& setup, Communicator& comm);
};

/// The one that the job names.
const StrategyEntry& find_strategy(const Job& job);

/// The strategy `data` on the setup's device, as the catalogue makes it.
std::unique_ptr<ParallelStrategy> make_data_parallel(const JobSetup& setup, Communicator& comm);

/// Makes ranks check each other in each step, as the options say. Borrows all.
std::shared_ptr<RankChecks> check_ranks(ParallelStrategy& strategy, const JobSetup& setup,
                                        Communicator& comm);

/// Every rank has some layers (pipeline_checks.cpp).
extern const StrategySetup kPipelineSetup;

// How much memory a pipeline takes: from sizes alone, before anything is allocated.

/// Memory of one rank of the job, on its host and, if it has one, on its GPU. The data set on the host is no part of
/// it.
/// @param gpu  of this rank, whose like all have; null: they compute on CPUs
TrainingMemory pipeline_memory(const Job& job, const Network& network, const DataSizes& data,
                               const StagePlan& plan, const Gpu* gpu, int rank);

/// Asks whether that fits: on the host for all ranks there, on the GPU for this one.
/// @throws MemoryError, DeviceError  it does not
/// @throws ShapeError                the network is larger than GPU kernels can number
/// @returns must_stream(); false on CPUs
bool require_pipeline_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const StagePlan& plan, const DeviceChoice& device, const Communicator& comm);

}  // namespace lockstep
