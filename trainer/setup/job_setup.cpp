// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Network, device, data and plan of a job, once all ranks have them and agree on them.
#include "trainer/setup/job_setup.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/device/gpu_choice.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/training/cut_step.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/training/weight_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

bool check_data_parallel(const Job& job, const Network& network, const TrainTestData& data,
                         const DeviceChoice& device, const Communicator& comm) {
  const auto sampling = sampler_options(training_options(job), data.train, comm.rank(), comm.size());
  check_sampling(job, network, sampling);
  check_recompute(job, device.gpu != nullptr);
  return require_training_memory(job, network, data, device, comm);
}

/// A run may be too short for the evaluations that its patience counts.
void check_patience(const Job& job, std::int64_t steps_per_epoch) {
  const std::int64_t every = job.train.evaluate_every_steps, most = job.train.max_steps;
  const std::int64_t first = every > 0 ? std::min(every, steps_per_epoch) : steps_per_epoch;
  if (job.train.patience == 0 || most == 0 || first <= most) return;
  throw OptionError(
      "train.patience",
      fmt::format("a run of train.max_steps={} ends before its first evaluation, which is after {}; "
                  "set train.evaluate_every_steps={} or less, or leave train.patience out",
                  most, counted(first, "step"), most));
}

}  // namespace

void check_recompute(const Job& job, bool on_gpu) {
  if (!on_gpu || !job.train.recompute) return;
  throw OptionError("train.recompute",
                    "a GPU keeps all activations; remove the key, and where they do not fit, use "
                    "data.micro_batch, more GPUs, or parallel.device=cpu");
}

void check_sampling(const Job& job, const Network& network, const DistributedSampler::Options& sampling) {
  DistributedSampler::check(sampling);
  check_patience(job, DistributedSampler::steps_per_epoch(sampling));
  require_samples_for_cuts(network, sampling);
  require_patterns_that_match(job.train, network.parameters());
  WeightUpdate(training_options(job), network.parameters(), DistributedSampler::steps_per_epoch(sampling))
      .require_warmup_within_run();
}

/// Stages and their ranks may follow from the strategy alone.
ConfigError with_place(const Job& job, const OptionError& error) {
  std::string place = place_of(job, error.option());
  const bool of_pipeline = error.option() == "parallel.stages" || error.option() == "parallel.placement";
  if (place.empty() && of_pipeline) place = place_of(job, "parallel.strategy");
  return ConfigError(place + error.what());
}

TrainingOptions training_options(const Job& job) {
  return {.batch = job.data,
          .loss = job.train,
          .update = job.train,
          .step = job.parallel,
          .seed = job.train.seed,
          .recompute = job.train.recompute,
          .mixes = mixes_images(job.data.augment),
          .fingerprints = keeps_trail(job)};
}

constexpr StrategySetup kDataParallelSetup{.check = check_data_parallel, .plan = plan_buckets};

std::optional<AugmentPlan> augment_plan_of(const Job& job, const Dataset& train) {
  return with_places(job, [&] { return make_augment_plan(job.data.augment, train, job.train.seed); });
}

JobSetup make_setup(const Job& job, std::shared_ptr<const TrainTestData> data, DeviceChoice device,
                    Network network, BucketPlan plan) {
  const std::string processor = device.description;
  return {{.options = training_options(job),
           .data = std::move(data),
           .network = std::move(network),
           .plan = std::move(plan),
           .processor = processor},
          std::move(device),
          /*streams=*/false,
          job.parallel.graph,
          backend_named(job.parallel.backend).gradients,
          job.parallel};
}

JobSetup set_up(const Job& job, Communicator& comm, const DatasetFuture& in_advance,
                const StrategySetup& strategy, const NetworkMaker& make_network) {
  LoadedData loaded;
  std::optional<Network> network;
  std::optional<AugmentPlan> augment;
  SampleMixer mixer;
  DeviceChoice device = choose_device(for_precision(job.parallel, job.train.precision), comm);
  std::int64_t ranks_that_stream = 0;
  const DatasetFuture data = await_data(job, comm, in_advance);
  const TrainingOptions options = training_options(job);
  agree(comm, [&] {
    if (has_ended(data)) loaded = data.get();
    if (loaded.sets == nullptr || !loaded.is_here()) return;  // another rank says why
    const Dataset& train = loaded.sets->train;
    network = make_network ? make_network(train)
                           : Network::load(job.model, train.shape, train.classes, job.train.precision);
    augment = augment_plan_of(job, train);
    mixer = SampleMixer(job.data.augment, train.shape, job.train.seed);
    with_places(job, [&] {
      const TrainingLoss loss(options, train);  // throws where the options do not fit the set
      ranks_that_stream = strategy.check(job, *network, *loaded.sets, device, comm) ? 1 : 0;
    });
  });
  if (device.gpu != nullptr) comm.all_reduce(std::span(&ranks_that_stream, 1));  // one that must, and all do
  expect_equal_ranks(comm, setup_facts(job, *network, *loaded.sets, device));
  share_checks(comm, *loaded.sets);
  BucketPlan plan = strategy.plan(job, *network, device, comm);
  JobSetup setup =
      make_setup(job, std::move(loaded.sets), std::move(device), std::move(*network), std::move(plan));
  setup.augment = augment;
  setup.mixer = std::move(mixer);
  setup.streams = ranks_that_stream > 0;
  setup.fingerprints = std::move(loaded.fingerprints);
  return setup;
}

/// The plan of a CPU follows measured latencies, unless the job gives a size.
BucketPlan plan_buckets(const Job& job, const Network& network, const DeviceChoice& device,
                        Communicator& comm) {
  std::size_t bytes = job.parallel.bucket_bytes;
  if (bytes == 0 && device.gpu == nullptr) return plan_buckets_by_latency(network, job.parallel, comm);
  if (bytes == 0) bytes = bucket_bytes_of(*device.gpu);
  return plan_buckets_of_size(network, job.parallel, bytes);
}

// The arithmetic of a device and its kernels, and what people are told of each.

Arithmetic arithmetic_of(const Job& job, int classes) {
  return static_cast<Arithmetic>(arithmetic_version(job.train, classes));
}

Arithmetic arithmetic_of(const Job& job, int classes, const DeviceChoice& device) {
  const bool vendor = device.gpu != nullptr && job.parallel.kernels == Kernels::kVendor;
  return vendor ? Arithmetic::kVendor : arithmetic_of(job, classes);
}

namespace {

bool is_of_this_program(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kCanonical || arithmetic == Arithmetic::kSmoothedPair;
}

}  // namespace

std::string describe(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kVendor) return "that of cuDNN and cuBLAS";
  return fmt::format("version {}{}", static_cast<std::uint32_t>(arithmetic),
                     is_of_this_program(arithmetic) ? "" : ", which this program does not know");
}

std::string how_to_have(Arithmetic arithmetic, Arithmetic here) {
  if (arithmetic == Arithmetic::kVendor) return "--device cuda --kernels vendor, on such a GPU";
  if (is_of_this_program(arithmetic) && here == Arithmetic::kVendor)
    return "the kernels of this program: leave out --kernels vendor";
  return "the version that made it";
}

}  // namespace lockstep
