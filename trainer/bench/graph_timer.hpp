// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Times ops on a device: many calls in one graph, between two events, so that neither the host nor the
/// launching of single kernels is part of it.
#pragma once

#include "kernels/device/device.hpp"

#include <functional>
#include <memory>

namespace lockstep::bench {

/// Queues call number `call` (0, 1, ...) of an op.
using QueueCall = std::function<void(Stream& stream, int call)>;

class GraphTimer {
 public:
  /// @param calls     in the graph
  /// @param launches  of the graph in a turn
  /// Runs the op once before it captures it. Borrows device and stream.
  GraphTimer(Device& device, Stream& stream, const QueueCall& queue, int calls, int launches);

  /// Of one call, averaged over a turn. Blocks until it is done.
  double seconds();

 private:
  Stream& stream_;
  int calls_, launches_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Event> start_, end_;
};

}  // namespace lockstep::bench
