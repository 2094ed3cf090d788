// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages and micro-batches, and the memory that they take.
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "trainer/parallel/pipeline.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/cut_step.hpp"
#include "trainer/training/worker_pool.hpp"
#include "trainer/verify/share_replay.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

// Adds up stages, grains in flight and state, for the rank that needs most.

/// Micro-batches of a step.
std::int64_t grains_of_a_pipeline(const Job& job, const StagePlan& plan, std::int64_t train_samples) {
  const std::int64_t batch = std::min(job.data.global_batch, train_samples), grain = job.parallel.grain;
  const std::int64_t grains = (batch + grain - 1) / grain;
  return (grains + plan.replicas - 1) / plan.replicas;
}

/// Micro-batches of a stage between forward and backward, at most.
std::uint64_t in_flight(const Job& job, const StagePlan& plan, std::int64_t train_samples, int stage) {
  if (!at(plan.stages, stage).goes_back()) return 1;
  if (job.parallel.schedule != PipelineOrder::kGPipe) return static_cast<std::uint64_t>(plan.count() - stage);
  return static_cast<std::uint64_t>(grains_of_a_pipeline(job, plan, train_samples));
}

std::uint64_t bytes_of_micro_batch(const Job& job, const Network& network, const NetworkPart& part,
                                   bool on_gpu) {
  if (on_gpu) return device_execution_bytes(network, job.parallel.grain, true, part);
  return execution_bytes(network, ThreadContext::columns_for(job.parallel.grain), part);
}

/// Copies on the device of a stage's messages to its neighbours, as many as micro-batches can be in flight there.
std::uint64_t message_bytes(const Job& job, const Network& network, const StagePlan& plan,
                            std::int64_t train_samples, int number) {
  const NetworkPart& part = at(plan.stages, number).part;
  const auto bytes_of = [&](const ImageShape& shape, int taker) {
    return checked_product(shape.features(), job.parallel.grain, kFp32,
                           in_flight(job, plan, train_samples, taker));
  };
  std::uint64_t bytes = 0;
  if (number < plan.last()) bytes = bytes_of(network.layers()[part.last - 1]->output(), number);
  if (!part.gives_input_gradient) return bytes;
  return checked_sum(bytes, bytes_of(network.layers()[part.first]->input(), number - 1));
}

}  // namespace

TrainingMemory pipeline_memory(const Job& job, const Network& network, const DataSizes& data,
                               const StagePlan& plan, const Gpu* gpu, int rank) {
  const bool on_gpu = gpu != nullptr, copies = messages_stay_on_device(plan, gpu);
  const auto add = [](std::uint64_t& sum, std::uint64_t bytes) { sum = checked_sum(sum, bytes); };
  TrainingMemory memory;
  MemoryNeed& worker = on_gpu ? memory.device : memory.host;
  std::uint64_t held = 0;
  for (const int number : plan.stages_of(rank % plan.width)) {
    const PipelineStage& stage = at(plan.stages, number);
    held += stage.arena.size;
    add(worker.activations, checked_product(bytes_of_micro_batch(job, network, stage.part, on_gpu),
                                            in_flight(job, plan, data.train_samples, number)));
    if (copies) add(worker.activations, message_bytes(job, network, plan, data.train_samples, number));
  }
  worker.parameters =
      checked_product(held, on_gpu ? device_bytes(job, network, plan.replicas)
                                   : state_bytes(job) + 2 * kFp32 + sum_bytes(job, plan.replicas));
  if (rank == 0)  // the whole state, too
    add(memory.host.parameters,
        checked_product(network.parameters().size, state_bytes(job) + checkpoint_bytes(job, rank)));
  if (!on_gpu) return memory;
  add(memory.host.parameters, checked_product(held, state_bytes(job)));
  add(memory.device.parameters, trail_bytes(job, network, 1));
  if (plan.rank_of(0) != rank % plan.width) return memory;
  memory.device.data = data.bytes();
  if (!data.streams) return memory;
  const std::int64_t grain = job.parallel.grain;
  const std::int64_t columns = grain * grains_of_a_pipeline(job, plan, data.train_samples);
  const std::uint64_t ring = ring_bytes(job, data, columns, 0, grain);
  memory.device.data = checked_sum(checked_product(data.samples(), sizeof(std::int32_t)), ring);
  memory.host.data = ring;
  return memory;
}

namespace {

/// Ranks of one pipeline, as its keys say. With auto for all of them, one rank has all layers.
int ranks_asked(const PipelineOptions& options) {
  const auto& [stages, placement, order] = options;
  const std::int64_t count = stages.layers.empty() ? stages.count : std::ssize(stages.layers);
  if (count == 0) return static_cast<int>(std::max<std::size_t>(1, placement.size()));
  if (placement.empty()) return static_cast<int>(count);
  return static_cast<int>(*std::ranges::max_element(placement)) + 1;
}

}  // namespace

TrainingMemory foreseen_memory(const Job& job, const Network& network, const DataSizes& data, bool on_gpu,
                               int ranks) {
  const std::string& strategy = job.parallel.strategy;
  if (strategy != "data") require_no_cuts(network, strategy);
  if (strategy != "pipeline") return training_memory(job, network, data, on_gpu, std::max(1, ranks));
  const StagePlan plan = plan_stages(job.parallel, network, ranks > 0 ? ranks : ranks_asked(job.parallel));
  const Gpu gpu;
  const auto smaller = [](const MemoryNeed& a, const MemoryNeed& b) { return a.total() < b.total(); };
  TrainingMemory largest;
  for (int rank = 0; rank < plan.width; ++rank) {
    const TrainingMemory memory = pipeline_memory(job, network, data, plan, on_gpu ? &gpu : nullptr, rank);
    largest.host = std::max(largest.host, memory.host, smaller);
    largest.device = std::max(largest.device, memory.device, smaller);
  }
  largest.host.data = checked_sum(largest.host.data, data.host_bytes());
  return largest;
}

namespace {

void require_host_memory(const Job& job, const Network& network, const DataSizes& data, const StagePlan& plan,
                         const Gpu* gpu, const Communicator& comm) {
  const int first = std::max(0, comm.rank() - comm.local_rank());  // ranks of one host are neighbours
  std::uint64_t bytes = 0;
  for (int rank = first; rank < std::min(first + comm.local_size(), comm.size()); ++rank)
    bytes = checked_sum(bytes, pipeline_memory(job, network, data, plan, gpu, rank).host.total());
  require_memory(bytes,
                 fmt::format("training {} in {} with {} on this machine", network.name(),
                             counted(plan.count(), "stage"), counted(comm.local_size(), "rank")),
                 "use fewer ranks on this machine, a smaller parallel.grain, or a smaller model",
                 comm.backend() == "thread" ? 1 : comm.local_size());
}

/// Asks whether that fits: on the host for all ranks there, on the GPU for this one.
/// @throws MemoryError, DeviceError  it does not
/// @throws ShapeError                the network is larger than GPU kernels can number
/// @returns must_stream(); false on CPUs
bool require_pipeline_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const StagePlan& plan, const DeviceChoice& device, const Communicator& comm) {
  const Gpu* gpu = device.gpu.get();
  DataSizes sizes = sizes_of(data);
  const auto need = [&] { return pipeline_memory(job, network, sizes, plan, gpu, comm.rank()).device; };
  if (gpu != nullptr) sizes.streams = must_stream(job, need(), gpu->device->properties());
  require_host_memory(job, network, sizes, plan, gpu, comm);
  if (gpu == nullptr) return false;
  check_device_limits(network, job.parallel.grain);
  require_device_memory(network, need(), gpu->device->properties(),
                        "lower parallel.grain, use more stages, a smaller model, or data.on_device=stream");
  return sizes.streams;
}

// Stages and micro-batches.

void check_replicas_have_work(const DistributedSampler::Options& sampling, const StagePlan& plan) {
  const std::int64_t grains = (sampling.global_batch + sampling.grain - 1) / sampling.grain;
  if (plan.replicas <= grains) return;
  throw OptionError("parallel.stages",
                    fmt::format("a global batch of {} in grains of {} has micro-batches for {} of {}, "
                                "and {} were started; start no more than {}, or add data.global_batch={}",
                                counted(sampling.global_batch, "sample"), sampling.grain,
                                counted(grains, "pipeline"), counted(plan.width, "rank"), plan.replicas,
                                counted(grains * plan.width, "rank"), plan.replicas * sampling.grain));
}

/// Chunks are of one size as far as they go. The last pipelines may get none: in every batch, or in the last one
/// of an epoch.
void require_no_empty_chunks(const DistributedSampler::Options& sampling, const StagePlan& plan) {
  if (sampling.split != DistributedSampler::Split::kChunk) return;
  const std::int64_t rest = sampling.samples % sampling.global_batch;
  for (const std::int64_t samples : {sampling.global_batch, rest}) {
    const std::int64_t grains = (samples + sampling.grain - 1) / sampling.grain;
    const std::int64_t piece = (grains + plan.replicas - 1) / plan.replicas;
    if (grains == 0 || (plan.replicas - 1) * piece < grains) continue;
    throw OptionError("parallel.split",
                      fmt::format("chunk leaves {} of {} pipelines without a micro-batch, in a batch of {} "
                                  "in grains of {}; use parallel.split=even",
                                  plan.replicas - (grains + piece - 1) / piece, plan.replicas,
                                  counted(samples, "sample"), sampling.grain));
  }
}

void require_messages_to_compare(const StepOptions& step, const StagePlan& plan, const Gpu* gpu) {
  if (plan.width == 1 || !messages_stay_on_device(plan, gpu)) return;
  if (steps_between_replays(step, plan.replicas, gpu != nullptr) == 0) return;
  throw OptionError(
      "parallel.replay_every_steps",
      "messages that go from GPU to GPU have no fingerprints, so a wrong stage could not be named; use "
      "parallel.backend=mpi, or remove the key");
}

bool check_pipeline(const Job& job, const Network& network, const TrainTestData& data,
                    const DeviceChoice& device, const Communicator& comm) {
  require_no_cuts(network, job.parallel.strategy);
  const StagePlan plan = plan_stages(job.parallel, network, comm.size());
  const auto sampling = pipeline_sampling(training_options(job), data.train, plan, comm.rank());
  check_replicas_have_work(sampling, plan);
  require_no_empty_chunks(sampling, plan);
  check_sampling(job, network, sampling);
  require_messages_to_compare(job.parallel, plan, device.gpu.get());
  return require_pipeline_memory(job, network, data, plan, device, comm);
}

/// A bucket for each stage that has parameters, the last stage first.
BucketPlan plan_pipeline_buckets(const Job& job, const Network& network, const DeviceChoice& /*device*/,
                                 Communicator& comm) {
  BucketPlan buckets;
  const StagePlan plan = plan_stages(job.parallel, network, comm.size());
  for (int stage = plan.count(); stage-- > 0;) {
    const ParameterRange& range = at(plan.stages, stage).arena;
    if (range.size > 0) buckets.buckets.push_back({.offset = range.offset, .size = range.size});
  }
  return buckets;
}

}  // namespace

const StrategySetup kPipelineSetup{.check = check_pipeline, .plan = plan_pipeline_buckets};

}  // namespace lockstep
