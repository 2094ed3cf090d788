// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What shows only when ranks, devices and data are known.
#include "comm/gather.hpp"
#include "common/error.hpp"
#include "trainer/engine/cut_step.hpp"
#include "trainer/engine/memory_need.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/strategies/hogwild/hogwild.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

/// "job.yaml:3:9: " of a key that was given, or nothing.
std::string place_of(const Job& job, const char* key) {
  const auto place = job.places.find(key);
  return place == job.places.end() ? "" : place->second;
}

/// The one host that all ranks are on is that of each: fewer ranks here than in all are on several.
void require_one_host(const Job& job, const Communicator& comm) {
  if (comm.local_size() == comm.size()) return;
  throw ConfigError(
      fmt::format("{}parallel.strategy: hogwild shares the memory of one host, and {} of {} ranks are on {}; "
                  "start all ranks on "
                  "one host, or use parallel.strategy=data",
                  place_of(job, "parallel.strategy"), comm.local_size(), comm.size(), comm.host()));
}

void check_hogwild(const Job& job, const Network& network, const TrainTestData& data,
                   const DeviceChoice& device, const Communicator& comm) {
  if (device.gpu != nullptr) {
    throw ConfigError(fmt::format(
        "{}parallel.strategy: hogwild trains on CPUs, and parallel.device chose {}; add parallel.device=cpu",
        place_of(job, "parallel.strategy"), device.description));
  }
  require_no_cuts(job, network);
  require_one_host(job, comm);
  const auto sampling = sampler_options(job, data.train, comm);
  DistributedSampler::check(sampling);
  WeightUpdate(job, network.parameters(), DistributedSampler::steps_per_epoch(sampling))
      .require_warmup_within_run(job);
  require_training_memory(job, network, data, device, comm);
}

/// Nothing is summed.
BucketPlan no_buckets(const Job& /*job*/, const Network& /*network*/, const DeviceChoice& /*device*/,
                      Communicator& /*comm*/) {
  return {};
}

}  // namespace

constexpr StrategySetup kHogwildSetup{.check = check_hogwild, .plan = no_buckets};

}  // namespace lockstep
