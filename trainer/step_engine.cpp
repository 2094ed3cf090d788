// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/step_engine.hpp"

#include "trainer/cpu_step_engine.hpp"
#include "trainer/device/device_step_engine.hpp"

#include <algorithm>

namespace lockstep {

DistributedSampler::Options sampler_options(const Job& job, const Dataset& data, const Communicator& comm) {
  return {.samples = data.size(),
          .global_batch = std::min(job.data.global_batch, data.size()),
          .grain = job.parallel.grain,
          .seed = job.train.seed,
          .shuffle = job.data.shuffle,
          .rank = comm.rank(),
          .world_size = comm.size()};
}

std::unique_ptr<StepEngine> make_step_engine(const Job& job, const JobSetup& setup, Communicator& comm) {
  if (setup.device.gpu) return std::make_unique<DeviceStepEngine>(job, setup, comm);
  return std::make_unique<CpuStepEngine>(job, setup, comm);
}

}  // namespace lockstep
