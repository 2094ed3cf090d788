// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batches are queued share by share; counters come back at the end.
#include "trainer/device/device_evaluator.hpp"

#include "comm/device/device_all_reduce.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

/// The first sample, and that after the last one.
std::pair<std::int64_t, std::int64_t> share_of(std::int64_t samples, const Communicator& comm) {
  return {samples * comm.rank() / comm.size(), samples * (comm.rank() + 1) / comm.size()};
}

/// Samples of a batch.
std::int64_t most_of(const Dataset& data, std::int64_t most, const Communicator* streams_to) {
  most = std::min(most, data.size());
  return streams_to == nullptr ? most : streamed_at_once(most, row_bytes_of(data));
}

/// Streams batches of so many samples.
std::optional<Streaming> streaming_to(const Communicator* comm, const Dataset& data, std::int64_t most) {
  if (comm == nullptr) return std::nullopt;
  const auto [first, last] = share_of(data.size(), *comm);
  return Streaming{{.columns = static_cast<int>(most), .steps = kEvaluationRingSteps},
                   evaluated_rows(first, last, most)};
}

}  // namespace

DeviceEvaluator::DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data,
                                 LossKind loss, std::int64_t most, const Communicator* streams_to)
    : gpu_(gpu),
      stream_(stream),
      classes_(network.classes()),
      loss_(*gpu.device, stream, evaluation_rule(loss, data), data),
      data_(*gpu.device, stream, data, nullptr,
            streaming_to(streams_to, data, most_of(data, most, streams_to))),
      execution_(network, *gpu.device, *gpu.ops, static_cast<int>(most_of(data, most, streams_to)),
                 DeviceExecution::Purpose::kEvaluation),
      counters_(*gpu.device, kCounterSlots),
      host_counters_(*gpu.device, kCounterSlots),
      ended_{gpu.device->make_event(), gpu.device->make_event()} {}

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave,
                                     UnreadSamples* unread) {
  UnreadSamples thrown;
  stream_.fill_zero(counters_.data(), counters_.bytes());
  const bool finished = queue_share(comm, weights, leave, unread != nullptr ? *unread : thrown);
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.record(*ended_.front());
  wait_for(*ended_.front(), comm, "an evaluation on the GPU", nullptr);
  StepCounters counters = decode(host_counters_.span().first(kStepCounters));
  counters.values[kStopRequests] = finished ? 0 : 1;
  return evaluation_over_all(comm, counters);
}

/// False if it was left before its end.
bool DeviceEvaluator::queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave,
                                  UnreadSamples& unread) {
  auto [first, last] = share_of(data_.size(), comm);
  for (std::size_t batches = 0; first < last; ++batches) {
    Event& ended = *ended_[batches % ended_.size()];
    if (batches >= ended_.size()) wait_for(ended, comm, "an evaluation on the GPU", nullptr);
    if (leave()) return false;
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    StreamedRows rows;
    if (!unread.attempt([&] { rows = await_samples(comm, static_cast<std::int64_t>(batches)); }))
      return false;
    queue_batch(first, static_cast<int>(batch), rows, weights);
    stream_.record(ended);
    first += batch;
  }
  return true;
}

/// The batch before it may still be computed, those before that one are done.
StreamedRows DeviceEvaluator::await_samples(Communicator& comm, std::int64_t number) {
  SampleRing* const ring = data_.ring();
  if (ring == nullptr) return {};
  ring->begin(std::max<std::int64_t>(0, number - 1));
  ring->await(comm, stream_, number + 1);
  return ring->rows_of_step(number);
}

void DeviceEvaluator::queue_batch(std::int64_t first, int batch, const StreamedRows& rows,
                                  const float* weights) {
  DeviceOps& ops = *gpu_.ops;
  ops.gather(stream_, batch, data_.view(), {.first = first, .rows = rows}, execution_.input(),
             execution_.labels());
  const float* logits = execution_.forward_evaluation(stream_, weights, batch);
  const LossTarget target{.labels = execution_.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = narrow_loss_limit(data_.size())};
  ops.loss_and_gradient(stream_,
                        {.batch = batch, .samples = batch, .classes = classes_, .rule = loss_.rule()}, logits,
                        target, nullptr);
}

}  // namespace lockstep
