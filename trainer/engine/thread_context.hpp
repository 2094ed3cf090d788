// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What one thread of a rank needs to compute grains: its ops, its activations, its gradient.
#pragma once

#include "common/aligned_buffer.hpp"
#include "kernels/ops.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {

/// Seconds of one thread's work, by what they went to.
struct ThreadTimes {
  double input = 0;  ///< gathering and normalising batches
  double compute = 0;
};

struct ThreadContext {
  ThreadContext(const Network& network, std::unique_ptr<Ops> thread_ops, int grain)
      : ops(std::move(thread_ops)),
        columns(round_up(grain, ops->batch_multiple())),
        execution(network, *ops, columns),
        gradients(network.parameters().size),
        labels(static_cast<std::size_t>(columns)) {}

  /// Columns that a grain of `samples` takes.
  int columns_for(int samples) const { return round_up(samples, ops->batch_multiple()); }

  std::unique_ptr<Ops> ops;
  int columns;  ///< of a full grain
  Execution execution;
  AlignedBuffer<float> gradients;    ///< of the grain in work, arena order
  std::vector<std::int32_t> labels;  ///< of the grain in work
  ThreadTimes times;

 private:
  static int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }
};

}  // namespace lockstep
