// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages in host memory from one rank to another, without the others. (Everything that all ranks do
/// together is in comm/communicator.hpp and comm/collectives.hpp.)
#pragma once

#include "comm/pending_collective.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace lockstep {

/// One rank's end. Messages of one sender, one receiver and one tag arrive in the order in which they were
/// sent; those of different tags do not wait for each other. A rank may send to itself. One thread at a time
/// per rank; independent of sums and collectives, which may be under way.
class PointToPoint {
 public:
  static constexpr int kTags = 32768;  ///< a tag is from 0 to kTags - 1

  virtual ~PointToPoint() = default;

  /// Starts one; the buffer must stay untouched until test() is true. A send may be complete before it is
  /// received, or not: a rank that waits for it before it receives what the receiver sends first may wait for
  /// ever.
  virtual std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) = 0;
  /// `data` is as long as what is sent. test() and wait() throw InternalError if it is not, here or at the
  /// sender.
  virtual std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) = 0;
};

}  // namespace lockstep
