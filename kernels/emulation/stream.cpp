// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams and events of the runtime's API, and graphs captured from them.
#include "kernels/emulation/stream.hpp"

#include "kernels/emulation/block.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/runtime_api.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::emulation {
namespace {

/// A call that makes no sense in this capture, which is invalid from now on.
cudaError_t refuse(Capture& capture, cudaError_t status) {
  capture.invalid = true;
  return finish(status);
}

/// Captures that this thread has begun. Those that are over go when they are next looked at.
thread_local std::vector<std::weak_ptr<Capture>> captures;

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  *stream = new StreamState;
  return cudaSuccess;
}

/// CUDA does not say what becomes of a capture whose stream goes.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream->point.active() && stream->point.capture->origin == stream)
    return refuse(*stream->point.capture, cudaErrorStreamCaptureUnsupported);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream != nullptr && stream->point.active())
    return refuse(*stream->point.capture, cudaErrorStreamCaptureUnsupported);
  return check_unsafe_call();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  CapturePoint& point = stream->point;
  const bool orders_something = event->recorded && event->point.capture != point.capture;
  if (point.active() && orders_something)
    return refuse(*point.capture,
                  event->point.active() ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation);
  if (!event->point.active()) return cudaSuccess;
  point.join(event->point);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new EventState;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->point = stream == nullptr ? CapturePoint{} : stream->point;
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->point.active()) return refuse(*event->point.capture, cudaErrorCapturedEvent);
  if (event->point.capture != nullptr) return finish(cudaErrorCapturedEvent);
  return check_unsafe_call();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const bool usable = start->timed && start->recorded && end->timed && end->recorded;
  if (!usable) return finish(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*thread local*/) {
  if (stream == nullptr) return finish(cudaErrorStreamCaptureUnsupported);
  if (stream->point.active()) return refuse(*stream->point.capture, cudaErrorStreamCaptureUnsupported);
  const auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  stream->point = {capture, {}};
  capture->thread = std::this_thread::get_id();
  captures.push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->point.active()) return finish(cudaErrorInvalidValue);
  Capture& capture = *stream->point.capture;
  if (capture.origin != stream) return finish(cudaErrorStreamCaptureUnmatched);
  if (capture.thread != std::this_thread::get_id()) return finish(cudaErrorStreamCaptureWrongThread);
  capture.ended = true;
  const cudaError_t status = capture.invalid ? cudaErrorStreamCaptureInvalidated
                             : capture.graph.covered_by(stream->point.frontier)
                                 ? cudaSuccess
                                 : cudaErrorStreamCaptureUnjoined;
  if (status == cudaSuccess) *graph = new OperationGraph(std::move(capture.graph));
  stream->point = {};
  return finish(status);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void* nodes, std::size_t* count) {
  if (nodes != nullptr) return finish(cudaErrorInvalidValue);
  *count = graph->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  if ((flags & ~std::uint64_t{cudaGraphInstantiateFlagUseNodePriority}) != 0)
    return finish(cudaErrorInvalidValue);
  *executable = new OperationGraph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t /*executable*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  queue(stream, [executable] { executable->run(BlockRunner::here().order()); });
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

// Work is run or recorded; an event carries what a capture depends on from one stream to another.

void CapturePoint::join(const CapturePoint& other) {
  if (!active()) *this = other;
  for (const auto node : other.frontier)
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
}

void queue(StreamState* stream, Operation operation) {
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
  return std::find(covered.begin(), covered.end(), false) == covered.end();
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
