// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How sums in host memory are added up over all ranks: the way of a CPU's gradients. (For device memory see
/// comm/device_all_reduce.hpp.)
#pragma once

#include "comm/pending_collective.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// One rank's end. Every rank starts the same sums in the same order, and its communicator's collectives in
/// between where the others do. One thread at a time per rank.
class AllReduce {
 public:
  virtual ~AllReduce() = default;

  /// Starts an in-place sum over all ranks; the buffer must stay untouched until test() is true.
  /// int64: exact, wraps around, the same bits everywhere. fp32: the same bits on every rank; which, is the
  /// implementation's.
  virtual std::unique_ptr<PendingCollective> start(std::span<std::int64_t> data) = 0;
  virtual std::unique_ptr<PendingCollective> start(std::span<float> data) = 0;
};

}  // namespace lockstep
