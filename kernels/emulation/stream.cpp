// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Work is run or recorded; an event carries what a capture depends on from one stream to another.
#include "kernels/emulation/stream.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::emulation {

void CapturePoint::join(const CapturePoint& other) {
  if (!active()) {
    *this = other;
    return;
  }
  for (const auto node : other.frontier)
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
}

void queue(Stream* stream, Operation operation) {
  if (stream == nullptr || !stream->point.active()) return operation();
  CapturePoint& point = stream->point;
  const auto node = point.capture->graph.add(std::move(operation), point.frontier);
  point.frontier = {node};
}

}  // namespace lockstep::emulation
