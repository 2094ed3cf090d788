// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loss and accuracy over a data set on a GPU, spread over all ranks, every sample counted exactly once.
#pragma once

#include "comm/communicator.hpp"
#include "models/device_execution.hpp"
#include "trainer/engine/device/device_data.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/ranks/gpu.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace lockstep {

class DeviceEvaluator {
 public:
  /// Puts the set on the device. Borrows all references; at least one sample.
  DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data);

  /// Each rank takes its share of the set. Every sample's loss becomes an integer before it is added, so the
  /// result has the same bits on any number of ranks. Collective.
  /// @param weights  device memory, arena order
  /// @param leave    asked before each batch is queued whether to give up; all ranks then hear of it. At most two batches
  ///                 are queued at a time, so that it is asked while they run
  Evaluation evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave = never_leave);

 private:
  bool queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave);
  void queue_batch(std::int64_t first, int batch, const float* weights);

  const Gpu& gpu_;
  Stream& stream_;
  int classes_;
  DeviceData data_;
  DeviceExecution execution_;
  DeviceBuffer<std::int64_t> counters_;
  PinnedBuffer<std::int64_t> host_counters_;
  std::array<std::unique_ptr<Event>, 2> ended_;  ///< of the last two batches
};

}  // namespace lockstep
