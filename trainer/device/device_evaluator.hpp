// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loss and accuracy over a whole data set on a GPU, spread over all ranks. They are the numbers of a CPU, to the
/// last bit.
#pragma once

#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "models/device/device_execution.hpp"
#include "trainer/device/device_data.hpp"
#include "trainer/device/device_loss.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/training/evaluator.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace lockstep {

/// Samples at a time: enough to fill a GPU, and small enough for its cache.
inline constexpr std::int64_t kEvaluatedAtOnce = 1000;

class DeviceEvaluator {
 public:
  /// Puts the set on the device. Borrows all references; at least one sample.
  /// @param most        samples at a time
  /// @param streams_to  its rank's share of the set comes to the device batch by batch; null: the set is copied there whole
  DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data, LossKind loss,
                  std::int64_t most = kEvaluatedAtOnce, const Communicator* streams_to = nullptr);

  /// Each rank takes its share of the set. Every sample's loss becomes an integer before it is added, so the
  /// result has the same bits on any number of ranks. Collective.
  /// @param weights  device memory, arena order
  /// @param leave    asked before each batch is queued whether to give up; all ranks then hear of it. At most two
  ///                 batches are queued at a time, so that it is asked while they run
  /// @param unread   as the other evaluate() has it
  Evaluation evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave = never_leave,
                      UnreadSamples* unread = nullptr);

 private:
  bool queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave,
                   UnreadSamples& unread);
  /// @param number  of the batch, in the rank's share
  StreamedRows await_samples(Communicator& comm, std::int64_t number);
  void queue_batch(std::int64_t first, int batch, const StreamedRows& rows, const float* weights);

  const Gpu& gpu_;
  Stream& stream_;
  int classes_;
  DeviceLossRule loss_;
  DeviceData data_;
  DeviceExecution execution_;
  DeviceBuffer<std::int64_t> counters_;
  PinnedBuffer<std::int64_t> host_counters_;
  std::array<std::unique_ptr<Event>, 2> ended_;  ///< after the last two batches
};

}  // namespace lockstep
