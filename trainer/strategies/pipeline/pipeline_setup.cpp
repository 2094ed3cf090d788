// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages, micro-batches, memory.
#include "trainer/strategies/pipeline/pipeline_setup.hpp"

#include "common/checked_size.hpp"
#include "common/error.hpp"
#include "common/memory.hpp"
#include "models/layer.hpp"
#include "trainer/engine/cut_step.hpp"
#include "trainer/engine/weight_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

std::string place_of(const Job& job, const std::string& key) {
  const auto place = job.places.find(key);
  return place == job.places.end() ? "" : place->second;
}

void check_replicas_have_work(const Job& job, const DistributedSampler::Options& sampling,
                              const StagePlan& plan) {
  const std::int64_t grains = (sampling.global_batch + sampling.grain - 1) / sampling.grain;
  if (plan.replicas <= grains) return;
  throw ConfigError(
      fmt::format("{}parallel.stages: a global batch of {} samples in grains of {} has micro-batches for {} "
                  "pipelines of {} "
                  "ranks, and {} were started; start no more than {} ranks, or add data.global_batch={}",
                  place_of(job, "parallel.stages"), sampling.global_batch, sampling.grain, grains, plan.width,
                  plan.replicas, grains * plan.width, plan.replicas * sampling.grain));
}

/// Chunks are of one size as far as they go, and the last pipelines may get none: in every batch, or in the last one
/// of an epoch.
void require_no_empty_chunks(const Job& job, const DistributedSampler::Options& sampling,
                             const StagePlan& plan) {
  if (sampling.split != DistributedSampler::Split::kChunk) return;
  const std::int64_t rest = sampling.samples % sampling.global_batch;
  for (const std::int64_t samples : {sampling.global_batch, rest}) {
    const std::int64_t grains = (samples + sampling.grain - 1) / sampling.grain;
    const std::int64_t piece = (grains + plan.replicas - 1) / plan.replicas;
    if (grains == 0 || (plan.replicas - 1) * piece < grains) continue;
    throw ConfigError(fmt::format(
        "{}parallel.split: chunk leaves {} of {} pipelines without a micro-batch, in a batch of {} samples "
        "in grains of {}; use parallel.split=even",
        place_of(job, "parallel.split"), plan.replicas - (grains + piece - 1) / piece, plan.replicas, samples,
        sampling.grain));
  }
}

/// A CPU's ops come in groups of so many samples.
constexpr int kBatchMultiple = 16;

/// Weights, what the optimiser remembers, gradients and sums; and activations of the micro-batches in flight.
std::uint64_t bytes_of_rank(const Job& job, const Network& network, const StagePlan& plan, int world_rank) {
  const std::uint64_t state = (1 + optimizer_buffers(job)) * sizeof(float);
  const int columns = (job.parallel.grain + kBatchMultiple - 1) / kBatchMultiple * kBatchMultiple;
  std::uint64_t held = 0, activations = 0;
  for (const int number : plan.stages_of(world_rank % plan.width)) {
    const PipelineStage& stage = plan.stages[static_cast<std::size_t>(number)];
    held += stage.arena.size;
    const int in_flight = stage.goes_back() ? plan.count() - number : 1;
    activations = checked_sum(activations, checked_product(part_execution_bytes(network, stage.part, columns),
                                                           static_cast<std::uint64_t>(in_flight)));
  }
  const std::uint64_t whole = world_rank == 0 ? checked_product(network.parameters().size, 2 * state) : 0;
  return checked_sum(
      checked_sum(whole, checked_product(held, state + 2 * sizeof(float) + 2 * sizeof(std::int64_t))),
      activations);
}

/// Ranks of one host are neighbours.
void require_memory_of_host(const Job& job, const Network& network, const StagePlan& plan,
                            const Communicator& comm) {
  const int first = std::max(0, comm.rank() - comm.local_rank());
  std::uint64_t bytes = 0;
  for (int rank = first; rank < std::min(first + comm.local_size(), comm.size()); ++rank)
    bytes = checked_sum(bytes, bytes_of_rank(job, network, plan, rank));
  require_memory(bytes,
                 fmt::format("training {} in {} stages with {} ranks on this machine", network.name(),
                             plan.count(), comm.local_size()),
                 "use fewer ranks on this machine, a smaller parallel.grain, or a smaller model",
                 comm.backend() == "thread" ? 1 : comm.local_size());
}

void check_pipeline(const Job& job, const Network& network, const TrainTestData& data,
                    const DeviceChoice& device, const Communicator& comm) {
  if (device.gpu != nullptr) {
    throw ConfigError(
        fmt::format("{}parallel.strategy: a pipeline computes on CPUs, and parallel.device={} is {}; set "
                    "parallel.device=cpu",
                    place_of(job, "parallel.strategy"), job.parallel.device, device.kind));
  }
  require_no_cuts(job, network);
  const StagePlan plan = plan_stages(job, network, comm.size());
  const auto sampling = pipeline_sampling(job, data.train, plan, comm.rank());
  check_replicas_have_work(job, sampling, plan);
  require_no_empty_chunks(job, sampling, plan);
  DistributedSampler::check(sampling);
  WeightUpdate(job, network.parameters(), DistributedSampler::steps_per_epoch(sampling))
      .require_warmup_within_run(job);
  require_memory_of_host(job, network, plan, comm);
}

/// A bucket for each stage that has parameters, the last stage first.
BucketPlan plan_pipeline_buckets(const Job& job, const Network& network, const DeviceChoice& /*device*/,
                                 Communicator& comm) {
  BucketPlan buckets;
  const StagePlan plan = plan_stages(job, network, comm.size());
  for (int stage = plan.count(); stage-- > 0;) {
    const ParameterRange& range = plan.stages[static_cast<std::size_t>(stage)].arena;
    if (range.size > 0) buckets.buckets.push_back({.offset = range.offset, .size = range.size});
  }
  return buckets;
}

}  // namespace

const StrategySetup kPipelineSetup{.check = check_pipeline, .plan = plan_pipeline_buckets};

DistributedSampler::Options pipeline_sampling(const Job& job, const Dataset& data, const StagePlan& plan,
                                              int rank) {
  return {.samples = data.size(),
          .global_batch = std::min(job.data.global_batch, data.size()),
          .grain = job.parallel.grain,
          .seed = job.train.seed,
          .shuffle = job.data.shuffle,
          .rank = rank / plan.width,
          .world_size = plan.replicas,
          .split = job.parallel.split == "chunk" ? DistributedSampler::Split::kChunk
                                                 : DistributedSampler::Split::kEven};
}

}  // namespace lockstep
