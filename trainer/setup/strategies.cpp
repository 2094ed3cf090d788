// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The catalogue of strategies, and what must fit before one is made.
#include "trainer/setup/strategies.hpp"

#include "common/error.hpp"
#include "common/spelling.hpp"
#include "trainer/device/device_data_parallel.hpp"
#include "trainer/parallel/hogwild.hpp"
#include "trainer/parallel/pipeline.hpp"
#include "trainer/training/cut_step.hpp"
#include "trainer/training/data_parallel.hpp"

#include <fmt/format.h>

#include <array>

namespace lockstep {
namespace {

bool check_hogwild(const Job& job, const Network& network, const TrainTestData& data,
                   const DeviceChoice& device, const Communicator& comm) {
  if (device.gpu != nullptr)
    throw OptionError(
        "parallel.strategy",
        fmt::format("hogwild trains on CPUs, and parallel.device chose {}; add parallel.device=cpu",
                    device.description));
  require_no_cuts(network, job.parallel.strategy);
  if (comm.local_size() < comm.size())  // those of this host
    throw OptionError("parallel.strategy",
                      fmt::format("hogwild shares the memory of one host, and {} of {} ranks are on {}; "
                                  "start all ranks on one host, or use parallel.strategy=data",
                                  comm.local_size(), comm.size(), comm.host()));
  return kDataParallelSetup.check(job, network, data, device, comm);
}

/// Nothing is summed.
constexpr StrategySetup kHogwildSetup{
    .check = check_hogwild,
    .plan = [](const Job&, const Network&, const DeviceChoice&, Communicator&) { return BucketPlan(); }};

std::unique_ptr<ParallelStrategy> make_pipeline(const JobSetup& setup, Communicator& comm) {
  return std::make_unique<Pipeline>(setup.pipeline, setup, setup.on_device(), comm);
}

const std::array kStrategies{
    StrategyEntry{"data", kDataParallelSetup, make_data_parallel},
    StrategyEntry{"pipeline", kPipelineSetup, make_pipeline},
    StrategyEntry{"hogwild", kHogwildSetup,
                  [](const JobSetup& setup, Communicator& comm) { return make_hogwild(setup, comm); }},
};

}  // namespace

std::unique_ptr<ParallelStrategy> make_data_parallel(const JobSetup& setup, Communicator& comm) {
  if (setup.device.gpu == nullptr) return make_cpu_data_parallel(setup, comm);
  return make_device_data_parallel(setup, setup.on_device(), comm);
}

std::shared_ptr<RankChecks> check_ranks(ParallelStrategy& strategy, const JobSetup& setup,
                                        Communicator& comm) {
  auto checks = std::make_shared<RankChecks>(strategy, setup, comm, setup.device.gpu != nullptr);
  strategy.observe(checks);
  return checks;
}

const StrategyEntry& find_strategy(const Job& job) {
  return entry_of(kStrategies, job.parallel.strategy, &StrategyEntry::name);
}

}  // namespace lockstep
