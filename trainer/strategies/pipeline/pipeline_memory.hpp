// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much memory a pipeline takes: from sizes alone, before anything is allocated.
#pragma once

#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/memory_need.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"

namespace lockstep {

/// Of one rank of the job, on its host and, where it has one, on its GPU. The data set on the host is no part of it.
/// @param gpu  of this rank, whose like all have; null: they compute on CPUs
TrainingMemory pipeline_memory(const Job& job, const Network& network, const DataSizes& data,
                               const StagePlan& plan, const Gpu* gpu, int rank);

/// Asks whether that fits: on the host for all ranks there, on the GPU for this one.
/// @throws MemoryError, DeviceError  it does not
/// @throws ShapeError                the network is larger than GPU kernels can number
void require_pipeline_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const StagePlan& plan, const DeviceChoice& device, const Communicator& comm);

}  // namespace lockstep
