// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams and events. Work runs at once, on the OS thread that queues it; while a stream captures, it is
/// recorded in a graph instead.
#pragma once

#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/order.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::emulation {

// Operations that a stream records instead of running them, and which of them must come before which.

/// A piece of work with its arguments, by value.
using Operation = std::function<void()>;

class OperationGraph {
 public:
  using Node = std::size_t;
  /// Nodes that a later one must wait for.
  using Frontier = std::vector<Node>;

  Node add(Operation operation, Frontier after);
  std::size_t size() const noexcept { return nodes_.size(); }
  /// Runs all operations, each after those it waits for; under a seed, in a random one of such orders.
  void run(Order& order) const;
  /// True if all nodes are in the frontier or come before it.
  bool covered_by(const Frontier& frontier) const;

 private:
  struct Step {
    Operation operation;
    Frontier after;
  };
  std::vector<Step> nodes_;
};

struct StreamState;

/// A graph that is being recorded by the stream that began it and those that joined in.
struct Capture {
  const StreamState* origin = nullptr;
  std::thread::id thread;  ///< the thread that must end it; none if that may be any
  OperationGraph graph;
  bool invalid = false;  ///< a call was refused meanwhile: no graph will come of it
  bool ended = false;
};

/// A stream's, or an event's, place in a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture;  ///< null or ended: none
  OperationGraph::Frontier frontier;

  bool active() const noexcept { return capture != nullptr && !capture->ended; }
  void join(const CapturePoint& other);
};

struct StreamState {
  CapturePoint point;
};

/// Runs the operation, or records it. Null: the default stream, which cannot capture.
void queue(StreamState* stream, Operation operation);

struct EventState {
  bool timed = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;  ///< time of the last record()
  CapturePoint point;
};

// Calls that CUDA calls potentially unsafe. No graph can hold them, so a thread that captures must not make
// them (cudaThreadExchangeStreamCaptureMode's manual). Other threads may, also beside a capture in global
// mode.

/// cudaErrorStreamCaptureUnsupported if the calling thread may not; the captures that forbid it are then invalid, as on a
/// GPU.
cudaError_t check_unsafe_call();

}  // namespace lockstep::emulation
