// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Work is run or recorded; an event carries what a capture depends on from one stream to another.
#include "kernels/emulation/stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

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

// Operations run in any order that their dependencies allow.

OperationGraph::Node OperationGraph::add(Operation operation, Frontier after) {
  nodes_.push_back({std::move(operation), std::move(after)});
  return nodes_.size() - 1;
}

void OperationGraph::run(Order& order) const {
  std::vector<std::size_t> missing(nodes_.size());
  std::vector<std::vector<Node>> followers(nodes_.size());
  std::vector<Node> ready;
  for (Node node = 0; node < nodes_.size(); ++node) {
    missing[node] = nodes_[node].after.size();
    for (const Node before : nodes_[node].after) followers[before].push_back(node);
    if (missing[node] == 0) ready.push_back(node);
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    std::swap(ready[next], ready[next + order.draw(ready.size() - next)]);
    nodes_[ready[next]].operation();
    for (const Node follower : followers[ready[next]])
      if (--missing[follower] == 0) ready.push_back(follower);
  }
}

bool OperationGraph::covered_by(const Frontier& frontier) const {
  std::vector<bool> covered(nodes_.size());
  for (const Node node : frontier) covered[node] = true;
  for (Node node = nodes_.size(); node-- > 0;)
    if (covered[node])
      for (const Node before : nodes_[node].after) covered[before] = true;
  for (const bool one : covered)
    if (!one) return false;
  return true;
}

// Each thread remembers the captures that it began, as long as they last.

namespace {

/// Captures that this thread has begun. Those that are over go when they are next looked at.
thread_local std::vector<std::weak_ptr<Capture>> captures;

}  // namespace

void forbid_unsafe_calls(const std::shared_ptr<Capture>& capture) {
  captures.push_back(capture);
}

cudaError_t check_unsafe_call() {
  std::erase_if(captures, [](const auto& held) {
    const std::shared_ptr<Capture> capture = held.lock();
    return capture == nullptr || capture->ended;
  });
  for (const auto& held : captures) held.lock()->invalid = true;
  return finish(captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}

}  // namespace lockstep::emulation
