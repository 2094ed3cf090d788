// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batches are queued share by share; counters come back at the end.
#include "trainer/engine/device/device_evaluator.hpp"

#include "comm/device_all_reduce.hpp"
#include "comm/step_counters.hpp"

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

/// Enough to fill a GPU, and small enough for its cache.
constexpr std::int64_t kMostColumns = 1000;

int columns_for(const Dataset& data) {
  return static_cast<int>(std::min(kMostColumns, data.size()));
}

}  // namespace

DeviceEvaluator::DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data)
    : gpu_(gpu),
      stream_(stream),
      classes_(network.classes()),
      data_(*gpu.device, stream, data),
      execution_(network, *gpu.device, *gpu.ops, columns_for(data), DeviceExecution::Purpose::kEvaluation),
      counters_(*gpu.device, kCounterSlots),
      host_counters_(*gpu.device, kCounterSlots),
      ended_{gpu.device->make_event(), gpu.device->make_event()} {}

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave) {
  stream_.fill_zero(counters_.data(), counters_.bytes());
  std::int64_t left = queue_share(comm, weights, leave) ? 0 : 1;
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.record(*ended_.front());
  wait_for(*ended_.front(), comm, "an evaluation on the GPU", nullptr);
  comm.all_reduce(host_counters_.span());
  comm.all_reduce(std::span(&left, 1));
  const StepTotals totals = decode(host_counters_.span().first(kStepCounters)).totals();
  Evaluation evaluation = make_evaluation(totals.samples, totals.correct, totals.refused, totals.loss());
  evaluation.interrupted = left > 0;
  return evaluation;
}

/// False if it was left before its end.
bool DeviceEvaluator::queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave) {
  std::int64_t first = data_.size() * comm.rank() / comm.size();
  const std::int64_t last = data_.size() * (comm.rank() + 1) / comm.size();
  for (std::size_t batches = 0; first < last; ++batches) {
    Event& ended = *ended_[batches % ended_.size()];
    if (batches >= ended_.size()) wait_for(ended, comm, "an evaluation on the GPU", nullptr);
    if (leave()) return false;
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    queue_batch(first, static_cast<int>(batch), weights);
    stream_.record(ended);
    first += batch;
  }
  return true;
}

void DeviceEvaluator::queue_batch(std::int64_t first, int batch, const float* weights) {
  DeviceOps& ops = *gpu_.ops;
  ops.gather(stream_, batch, data_.view(), {.first = first}, execution_.input(), execution_.labels());
  const float* logits = execution_.forward_evaluation(stream_, weights, batch);
  const LossTarget target{.labels = execution_.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = narrow_loss_limit(data_.size())};
  ops.softmax_cross_entropy(stream_, {.batch = batch, .samples = batch, .classes = classes_}, logits, target,
                            nullptr);
}

}  // namespace lockstep
