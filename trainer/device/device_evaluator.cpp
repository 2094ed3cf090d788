// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/device/device_evaluator.hpp"

#include <algorithm>

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

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights) {
  const std::int64_t last = data_.size() * (comm.rank() + 1) / comm.size();
  stream_.fill_zero(counters_.data(), counters_.bytes());
  for (std::int64_t first = data_.size() * comm.rank() / comm.size(); first < last;) {
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    queue_batch(first, static_cast<int>(batch), weights);
    first += batch;
  }
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.synchronize();
  comm.all_reduce(host_counters_.span());
  const std::int64_t samples = host_counters_[kSamples];
  const double loss = static_cast<double>(host_counters_[kLoss]) / kLossScale +
                      kLargestLoss * static_cast<double>(host_counters_[kNotFinite]);
  return {.samples = samples,
          .correct = host_counters_[kCorrect],
          .loss = loss / static_cast<double>(std::max<std::int64_t>(samples, 1))};
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
