// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages and micro-batches; of memory see pipeline_memory.hpp.
#include "trainer/strategies/pipeline/pipeline_setup.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/engine/cut_step.hpp"
#include "trainer/engine/weight_update.hpp"
#include "trainer/strategies/pipeline/pipeline_memory.hpp"

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
      fmt::format("{}parallel.stages: a global batch of {} in grains of {} has micro-batches for {} of {}, "
                  "and {} were started; start no more than {}, or add data.global_batch={}",
                  place_of(job, "parallel.stages"), counted(sampling.global_batch, "sample"), sampling.grain,
                  counted(grains, "pipeline"), counted(plan.width, "rank"), plan.replicas,
                  counted(grains * plan.width, "rank"), plan.replicas * sampling.grain));
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
        "{}parallel.split: chunk leaves {} of {} pipelines without a micro-batch, in a batch of {} "
        "in grains of {}; use parallel.split=even",
        place_of(job, "parallel.split"), plan.replicas - (grains + piece - 1) / piece, plan.replicas,
        counted(samples, "sample"), sampling.grain));
  }
}

void check_pipeline(const Job& job, const Network& network, const TrainTestData& data,
                    const DeviceChoice& device, const Communicator& comm) {
  require_no_cuts(job, network);
  const StagePlan plan = plan_stages(job, network, comm.size());
  const auto sampling = pipeline_sampling(job, data.train, plan, comm.rank());
  check_replicas_have_work(job, sampling, plan);
  require_no_empty_chunks(job, sampling, plan);
  DistributedSampler::check(sampling);
  WeightUpdate(job, network.parameters(), DistributedSampler::steps_per_epoch(sampling))
      .require_warmup_within_run(job);
  require_pipeline_memory(job, network, data, plan, device, comm);
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
          .split = job.parallel.split};
}

}  // namespace lockstep
