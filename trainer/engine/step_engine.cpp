// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What both engines share, and the choice between them.
#include "trainer/engine/step_engine.hpp"

#include "common/error.hpp"
#include "trainer/engine/cpu_step_engine.hpp"
#include "trainer/engine/device_step_engine.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace lockstep {
namespace {

constexpr double kSeriesSeconds = 0.5;
/// Ranks agree after every series while it is shorter than the longest, and then after so many: that costs a message.
constexpr std::int64_t kSeriesBetweenAgreements = 16;

}  // namespace

DistributedSampler::Options sampler_options(const Job& job, const Dataset& data, const Communicator& comm) {
  return {.samples = data.size(),
          .global_batch = std::min(job.data.global_batch, data.size()),
          .grain = job.parallel.grain,
          .seed = job.train.seed,
          .shuffle = job.data.shuffle,
          .rank = comm.rank(),
          .world_size = comm.size(),
          .split = job.parallel.split,
          .per_rank_batch = job.data.per_rank_batch};
}

void StepSeries::add(const StepTotals& step) {
  ++steps;
  samples += step.samples;
  correct += step.correct;
  loss_units += step.loss_units;
  last = step;
}

void SeriesLength::took(std::int64_t steps, double seconds, Communicator& comm) {
  if (steps_ == longest_ && ++series_ % kSeriesBetweenAgreements != 0) return;
  std::int64_t nanoseconds = std::llround(seconds * 1e9 / static_cast<double>(steps));
  if (comm.size() > 1) comm.all_reduce(std::span(&nanoseconds, 1));
  const double step = static_cast<double>(std::max<std::int64_t>(nanoseconds, 1)) * 1e-9 / comm.size();
  const double in_time = std::min(kSeriesSeconds / step, static_cast<double>(longest_));
  steps_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(in_time), 1, std::min(longest_, 2 * steps_));
}

void StepEngine::probe_next_sums(const GradientReducer::SeeSums& /*see*/) {
  throw ConfigError("inject.what: sums on a GPU cannot be reached; use parallel.device=cpu");
}

StepPosition after(const StepPosition& position, std::int64_t count) {
  return {position.epoch, position.step_in_epoch + count, position.global_step + count};
}

GradientUnits make_gradient_units(const Network& network, std::int64_t global_grains) {
  std::vector<std::size_t> sizes;
  for (const Parameter& parameter : network.parameters().parameters) sizes.push_back(parameter.size);
  return {sizes, global_grains};
}

std::unique_ptr<StepEngine> make_step_engine(const Job& job, const JobSetup& setup, Communicator& comm) {
  if (setup.device.gpu) return std::make_unique<DeviceStepEngine>(job, setup, comm);
  return std::make_unique<CpuStepEngine>(job, setup, comm);
}

}  // namespace lockstep
