// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adds up what the CPU's and the device's engines will allocate.
#include "trainer/setup/memory_need.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/augmentation.hpp"
#include "kernels/mix.hpp"
#include "models/batch_layer.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/device/device_data.hpp"
#include "trainer/device/device_evaluator.hpp"
#include "trainer/device/device_step.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/trained_state.hpp"
#include "trainer/training/weight_update.hpp"
#include "trainer/training/worker_pool.hpp"
#include "trainer/verify/share_replay.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr const char* kHelp =
    "use fewer ranks or threads on this machine, a smaller parallel.grain, or a smaller model";

/// The largest share of a global batch that one rank gets: whole grains.
std::int64_t samples_of_a_rank(const Job& job, std::int64_t train_samples, int ranks) {
  const std::int64_t batch = std::min(job.data.global_batch, train_samples);
  const std::int64_t grain = job.parallel.grain, grains = (batch + grain - 1) / grain;
  return std::min(batch, (grains + ranks - 1) / ranks * grain);
}

std::int64_t at_a_time(const Job& job, std::int64_t samples) {
  return samples_at_a_time(job.data.micro_batch, job.parallel.grain, samples);
}

/// With cuts all grains of a rank are under way at once (trainer/training/cut_step.hpp), otherwise one a thread.
std::uint64_t grains_in_work(const Job& job, const Network& network, std::int64_t train_samples, int ranks) {
  const auto threads = static_cast<std::uint64_t>(job.parallel.threads);
  if (cuts_of(network).empty()) return threads;
  const std::int64_t samples = samples_of_a_rank(job, train_samples, ranks), grain = job.parallel.grain;
  return std::max(threads, static_cast<std::uint64_t>((samples + grain - 1) / grain));
}

TrainingMemory on_cpu(const Job& job, const Network& network, std::int64_t train_samples, int ranks,
                      int rank) {
  const auto threads = static_cast<std::uint64_t>(job.parallel.threads);
  const std::uint64_t state = state_bytes(job) + checkpoint_bytes(job, rank);
  const std::uint64_t each = state + kFp32 * (1 + threads) + sum_bytes(job, ranks);
  const int columns = ThreadContext::columns_for(job.parallel.grain);
  return {
      .host = {.parameters = checked_product(network.parameters().size, each),
               .activations = checked_sum(
                   checked_product(grains_in_work(job, network, train_samples, ranks),
                                   execution_bytes(network, columns, {.recomputes = job.train.recompute})),
                   checked_product(threads, kernel_scratch_bytes(network, columns)))},
      .device = {}};
}

TrainingMemory on_device(const Job& job, const Network& network, const DataSizes& data, int ranks, int rank) {
  const std::uint64_t parameters = network.parameters().size;
  const std::uint64_t on_their_way = ranks > 1 ? kExact : 0;  // results, through the host
  const std::int64_t share = samples_of_a_rank(job, data.train_samples, ranks),
                     samples = at_a_time(job, share);
  const std::uint64_t on_host = state_bytes(job) + checkpoint_bytes(job, rank) + on_their_way;
  return {.host = {.parameters = checked_product(parameters, on_host)},
          .device = {
              .parameters = checked_sum(checked_product(parameters, device_bytes(job, network, ranks)),
                                        trail_bytes(job, network, kLongestSeries)),
              .activations = checked_sum(
                  device_execution_bytes(network, samples, true),
                  evaluation_bytes(job, network, data.test_samples),
                  data.validation_samples > 0 ? evaluation_bytes(job, network, data.validation_samples) : 0,
                  bytes_gathered_ahead(job.parallel.graph, network, samples, samples < share))}};
}

/// @param need_of  a rank's
void require_host_memory(const Network& network, const auto& need_of, const Communicator& comm) {
  const int ranks = comm.local_size();
  const bool has_first = comm.rank() == comm.local_rank();
  const MemoryNeed need = need_of(has_first ? 0 : 1), other = need_of(1);
  const std::uint64_t bytes =
      checked_sum(need.parameters, need.activations,
                  checked_product(checked_sum(other.parameters, other.activations), ranks - 1));
  const std::string what = fmt::format(
      "training {} with {} on this machine (each: {} with gradients and optimiser state {}, "
      "activations {})",
      network.name(), counted(ranks, "rank"), counted(network.parameters().size, "parameter"),
      format_memory(need.parameters), format_memory(need.activations));
  require_memory(bytes, what, kHelp, comm.backend() == "thread" ? 1 : ranks);
}

/// The largest data.micro_batch, in whole grains, with which training takes no more of a device than that. 0: it fits
/// with none, or the network allows none.
std::int64_t micro_batch_that_fits(Job job, const Network& network, const DataSizes& data, int ranks,
                                   std::uint64_t free_bytes) {
  if (!cuts_of(network).empty()) return 0;
  const std::int64_t grain = job.parallel.grain;
  std::int64_t fits = 0, too_many = samples_of_a_rank(job, data.train_samples, ranks) / grain + 1;
  while (fits + 1 < too_many) {
    const std::int64_t grains = fits + (too_many - fits) / 2;
    job.data.micro_batch = grains * grain;
    const bool fit = training_memory(job, network, data, true, ranks).device.total() <= free_bytes;
    (fit ? fits : too_many) = grains;
  }
  return fits * grain;
}

std::string what_helps(const Job& job, const Network& network, const DataSizes& data, int ranks,
                       std::uint64_t free_bytes) {
  constexpr const char* kAlways = "lower data.global_batch, use more GPUs, or a smaller model";
  const std::uint64_t for_kernels_and_graphs = free_bytes / 20;
  if (!data.streams && data.bytes() > free_bytes)
    return "a set is copied to the GPU whole with data.on_device=whole; data.on_device=stream brings it "
           "there step by step, with the same weights";
  const std::int64_t fits =
      micro_batch_that_fits(job, network, data, ranks, free_bytes - for_kernels_and_graphs);
  if (fits == 0) return kAlways;
  return fmt::format("data.micro_batch={} would fit, with the same weights; or {}", fits, kAlways);
}

}  // namespace

std::uint64_t state_bytes(const Job& job) {
  return (1 + optimizer_buffers(job.train)) * kFp32;
}

std::uint64_t sum_bytes(const Job& job, int teams) {
  const std::uint64_t sum = job.parallel.determinism == Determinism::kOff ? kFp32 : kExact;
  const std::uint64_t received = teams > 1 ? (sum == kExact ? 2 : 1) * sum : 0;  // terms of others; results
  return sum + received + (steps_between_replays(job.parallel, teams, false) != 0 ? kExact : 0);
}

std::uint64_t device_bytes(const Job& job, const Network& network, int teams) {
  constexpr std::uint64_t kUnit = sizeof(std::int16_t);  // none before the first one changes
  const std::uint64_t results = job.parallel.determinism == Determinism::kOff ? kFp32 : kExact;
  const WeightUpdate update(training_options(job), network.parameters(), 1);
  const std::uint64_t range = update.treats_all_alike() ? 0 : sizeof(std::int32_t);
  return state_bytes(job) + kExact + (teams > 1 ? results : 0) + kUnit + range;
}

std::uint64_t evaluation_bytes(const Job& job, const Network& network, std::int64_t samples) {
  return device_execution_bytes(network, std::min(samples, at_a_time(job, kEvaluatedAtOnce)), false);
}

std::uint64_t checkpoint_bytes(const Job& job, int rank) {
  return rank == 0 ? 2 * state_bytes(job) : 0;
}

std::uint64_t trail_bytes(const Job& job, const Network& network, std::int64_t steps) {
  if (!keeps_trail(job)) return 0;
  return device_fingerprint_bytes(network.parameters(), optimizer_buffers(job.train), steps);
}

DataSizes sizes_of(const TrainTestData& data) {
  return {data.train.size(), data.test.size(), row_bytes_of(data.train) + sizeof(std::int32_t),
          data.validation.size(), data.train.stays_on_disk()};
}

TrainingMemory training_memory(const Job& job, const Network& network, const DataSizes& data, bool on_gpu,
                               int ranks, int rank) {
  TrainingMemory memory = on_gpu ? on_device(job, network, data, ranks, rank)
                                 : on_cpu(job, network, data.train_samples, ranks, rank);
  const std::uint64_t labels = checked_product(data.samples(), sizeof(std::int32_t));
  memory.host.data = data.host_bytes();
  if (!on_gpu) return memory;
  const std::uint64_t place = sizeof(std::int32_t) + (mixes_images(job.data.augment) ? sizeof(SampleMix) : 0);
  const std::uint64_t order = checked_product(data.train_samples, place);
  if (!data.streams) {
    memory.device.data = checked_sum(data.bytes(), order);
    return memory;
  }
  const std::int64_t share = samples_of_a_rank(job, data.train_samples, ranks);
  const std::int64_t evaluated =
      streamed_at_once(at_a_time(job, kEvaluatedAtOnce), data.sample_bytes - sizeof(std::int32_t));
  const std::uint64_t ring = ring_bytes(job, data, share, at_a_time(job, share), evaluated);
  memory.device.data = checked_sum(labels, order, ring);
  memory.host.data = checked_sum(memory.host.data, ring);
  return memory;
}

std::uint64_t ring_bytes(const Job& job, const DataSizes& data, std::int64_t columns,
                         std::int64_t spare_columns, std::int64_t evaluated_at_once) {
  const std::uint64_t row = data.sample_bytes - sizeof(std::int32_t);
  const std::uint64_t pairs = mixes_images(job.data.augment) ? 2 : 1;
  const std::uint64_t step = checked_product(columns, row, pairs);
  const std::int64_t evaluated =
      std::min(data.test_samples, evaluated_at_once) + std::min(data.validation_samples, evaluated_at_once);
  return checked_sum(checked_product(step, training_ring_steps(step)),
                     checked_product(spare_columns, row, pairs),
                     checked_product(evaluated, row, kEvaluationRingSteps));
}

bool must_stream(const Job& job, const MemoryNeed& with_all_data, const DeviceProperties& device) {
  const std::uint64_t for_the_set = device.free_bytes - device.free_bytes / 10;
  if (job.data.on_device == OnDevice::kAuto) return with_all_data.total() > for_the_set;
  return job.data.on_device == OnDevice::kStream;
}

std::string to_string(const MemoryNeed& need) {
  return fmt::format("about {} (parameters {}, activations {}, data {})", format_memory(need.total()),
                     format_memory(need.parameters), format_memory(need.activations),
                     format_memory(need.data));
}

void require_device_memory(const Network& network, const MemoryNeed& need, const DeviceProperties& device,
                           std::string_view help) {
  if (need.total() <= device.free_bytes) return;
  throw DeviceError(fmt::format("not enough memory on {}: training {} would take {}, and {} are free; {}",
                                device.name, network.name(), to_string(need),
                                format_memory(device.free_bytes), help));
}

void require_no_cuts_in_micro_batches(const Job& job, const Network& network) {
  const std::vector<Cut> cuts = cuts_of(network);
  if (cuts.empty() || job.data.micro_batch == 0) return;
  const Layer& layer = *network.layers()[cuts.front().layer];
  throw OptionError(
      "data.micro_batch",
      fmt::format("layer {} ({}) looks at the whole global batch, so a GPU keeps the activations of all "
                  "samples of its rank until the last one has come that far; remove data.micro_batch, and "
                  "where they do not fit, use more GPUs, group_norm instead, parallel.device=cpu, or a "
                  "smaller data.global_batch",
                  layer.name(), layer.describe()));
}

bool require_training_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const DeviceChoice& device, const Communicator& comm) {
  const bool on_gpu = device.gpu != nullptr;
  DataSizes sizes = sizes_of(data);
  const auto need = [&](int rank) { return training_memory(job, network, sizes, on_gpu, comm.size(), rank); };
  if (on_gpu) sizes.streams = must_stream(job, need(0).device, device.gpu->device->properties());
  require_host_memory(
      network, [&](int rank) { return need(rank).host; }, comm);
  if (!on_gpu) return false;
  require_no_cuts_in_micro_batches(job, network);
  check_device_limits(
      network, at_a_time(job, samples_of_a_rank(job, sizes.train_samples, comm.size())),
      cuts_of(network).empty() ? "bound them by data.micro_batch, lower data.global_batch" : "");
  const DeviceProperties properties = device.gpu->device->properties();
  require_device_memory(network, need(0).device, properties,
                        what_helps(job, network, sizes, comm.size(), properties.free_bytes));
  return sizes.streams;
}

}  // namespace lockstep
