// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/job_setup.hpp"

#include "kernels/runtime/error.hpp"
#include "trainer/agreement.hpp"
#include "trainer/bucket_planning.hpp"
#include "trainer/memory_need.hpp"
#include "trainer/step_engine.hpp"

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

}  // namespace

DataInAdvance load_in_advance(const Job& job) {
  DatasetOptions options = dataset_options(job);
  try {
    // Reads the environment, so not on the other thread: MPI_Init may be changing it meanwhile.
    options.root = resolve_data_root(options.set, options.root);
  } catch (const Error&) {
    std::promise<std::shared_ptr<const TrainTestData>> failed;
    failed.set_exception(std::current_exception());
    return failed.get_future().share();
  }
  return std::async(std::launch::async,
                    [options]() -> std::shared_ptr<const TrainTestData> {
                      return std::make_shared<TrainTestData>(load_dataset(options));
                    })
      .share();
}

JobSetup set_up(const Job& job, Communicator& comm, const DataInAdvance& data) {
  std::shared_ptr<const TrainTestData> loaded;
  std::optional<Network> network;
  DeviceChoice device = choose_device(job.parallel, comm);
  agree(comm, [&] {
    loaded = data.get();
    network = Network::load(job.model, loaded->train.shape, loaded->train.classes);
    const DistributedSampler every_rank_has_work(sampler_options(job, loaded->train, comm));
    require_training_memory(job, *network, *loaded, device, comm);
  });
  BucketPlan plan = plan_buckets(job, *network, device, comm);
  return {.data = std::move(loaded),
          .device = std::move(device),
          .network = std::move(*network),
          .plan = std::move(plan)};
}

}  // namespace lockstep
