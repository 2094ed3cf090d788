// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/device/device_evaluator.hpp"

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

/// Enough to fill a GPU, and small enough for its cache.
constexpr std::int64_t kMostColumns = 1000;
/// What a sample counts whose loss is not a number: the weights have diverged, and the mean shall show it.
constexpr double kLargestLoss = 1e6;

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
      host_counters_(*gpu.device, kCounterSlots) {}

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave) {
  const std::int64_t first = data_.size() * comm.rank() / comm.size();
  const std::int64_t last = data_.size() * (comm.rank() + 1) / comm.size();
  stream_.fill_zero(counters_.data(), counters_.bytes());
  std::int64_t left = queue_share(first, last, weights, leave) ? 0 : 1;
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.synchronize();
  comm.all_reduce(host_counters_.span());
  comm.all_reduce(std::span(&left, 1));
  const std::int64_t samples = host_counters_[kSamples];
  const double loss = static_cast<double>(host_counters_[kLoss]) / kLossScale +
                      kLargestLoss * static_cast<double>(host_counters_[kNotFinite]);
  return {.samples = samples,
          .correct = host_counters_[kCorrect],
          .loss = loss / static_cast<double>(std::max<std::int64_t>(samples, 1)),
          .interrupted = left > 0};
}

/// False if it was left before its end.
bool DeviceEvaluator::queue_share(std::int64_t first, std::int64_t last, const float* weights,
                                  const LeaveEvaluation& leave) {
  while (first < last) {
    if (leave()) return false;
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    queue_batch(first, static_cast<int>(batch), weights);
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
                          .loss_limit = std::min(kLargestLoss, loss_limit(data_.size()))};
  ops.softmax_cross_entropy(stream_, {.batch = batch, .samples = batch, .classes = classes_}, logits, target,
                            nullptr);
}

}  // namespace lockstep
