// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams and events. Work runs at once, on the OS thread that queues it; while a stream captures, it is
/// recorded in a graph instead.
#pragma once

#include "kernels/emulation/graph.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace lockstep::emulation {

struct Stream;

/// A graph that is being recorded by the stream that began it and those that joined in.
struct Capture {
  const Stream* origin = nullptr;
  std::thread::id thread;  ///< which must end it; none if that may be any
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

struct Stream {
  CapturePoint point;
};

/// Runs the operation, or records it. Null: the default stream, which cannot capture.
void queue(Stream* stream, Operation operation);

struct Event {
  bool timed = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;  ///< of the last record()
  CapturePoint point;
};

}  // namespace lockstep::emulation
