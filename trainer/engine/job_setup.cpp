// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loads data in the background while the rest is set up.
#include "trainer/engine/job_setup.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/threads.hpp"
#include "trainer/engine/bucket_planning.hpp"
#include "trainer/engine/cut_step.hpp"
#include "trainer/engine/memory_need.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/ranks/launched_rank.hpp"
#include "trainer/ranks/rank_facts.hpp"

#include <exception>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

DatasetOptions dataset_options(const Job& job) {
  return {.set = job.data.set,
          .root = job.data.root,
          .mean = job.data.mean,
          .std = job.data.std,
          .seed = job.train.seed,
          .train_samples = job.data.train_samples,
          .test_samples = job.data.test_samples};
}

void check_data_parallel(const Job& job, const Network& network, const TrainTestData& data,
                         const DeviceChoice& device, const Communicator& comm) {
  const auto sampling = sampler_options(job, data.train, comm);
  DistributedSampler::check(sampling);
  require_samples_for_cuts(job, network, sampling);
  WeightUpdate(job, network.parameters(), DistributedSampler::steps_per_epoch(sampling))
      .require_warmup_within_run(job);
  require_training_memory(job, network, data, device, comm);
}

}  // namespace

constexpr StrategySetup kDataParallelSetup{.check = check_data_parallel, .plan = plan_buckets};

/// load_dataset, and what is wrong with its options as what it is in the job.
std::shared_ptr<TrainTestData> load_for(const Job& job, const DatasetOptions& options) {
  try {
    return std::make_shared<TrainTestData>(load_dataset(options));
  } catch (const DatasetOptionError& error) {
    throw key_error(job, "data." + error.option(), error.cause());
  }
}

DatasetFuture load_in_advance(const Job& job, const std::string& remembered) {
  DatasetOptions options = dataset_options(job);
  // Both read the environment, so not on the other thread: MPI_Init may be changing it meanwhile.
  const bool compared_soon = !remembered.empty() && launched_rank() == 0;
  try {
    options.directory =
        resolve_data_root(options.set, options.root, options.root == "auto" ? remembered : "");
  } catch (const Error&) {
    std::promise<LoadedData> failed;
    failed.set_exception(std::current_exception());
    return failed.get_future().share();
  }
  return start_async([job, options, compared_soon] {
           LoadedData loaded;
           loaded.sets = load_for(job, options);
           loaded.fingerprints = std::make_shared<LazyFingerprints>(loaded.sets);
           if (compared_soon) loaded.fingerprints->start();
           return loaded;
         })
      .share();
}

JobSetup set_up(const Job& job, Communicator& comm, const DatasetFuture& data, const StrategySetup& strategy,
                const NetworkMaker& make_network) {
  LoadedData loaded;
  std::optional<Network> network;
  DeviceChoice device = choose_device(job.parallel, comm);
  agree(comm, [&] {
    loaded = data.get();
    const Dataset& train = loaded.sets->train;
    network = make_network ? make_network(train) : Network::load(job.model, train.shape, train.classes);
    strategy.check(job, *network, *loaded.sets, device, comm);
  });
  expect_equal_ranks(comm, setup_facts(job, *network, *loaded.sets, device));
  BucketPlan plan = strategy.plan(job, *network, device, comm);
  return {.data = std::move(loaded.sets),
          .device = std::move(device),
          .network = std::move(*network),
          .plan = std::move(plan),
          .fingerprints = std::move(loaded.fingerprints)};
}

}  // namespace lockstep
