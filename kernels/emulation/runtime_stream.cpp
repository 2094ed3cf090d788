// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams, events, and graphs captured from them.
#include "kernels/emulation/block.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/runtime_api.hpp"
#include "kernels/emulation/stream.hpp"

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace lockstep::emulation {
namespace {

/// A call that makes no sense in this capture, which is invalid from now on.
cudaError_t refuse(Capture& capture, cudaError_t status) {
  capture.invalid = true;
  return finish(status);
}

/// The status of a capture that its origin ends.
cudaError_t outcome(const Capture& capture, const OperationGraph::Frontier& frontier) {
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  return capture.graph.covered_by(frontier) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new Stream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream->point.active() && stream->point.capture->origin == stream) stream->point.capture->ended = true;
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
  *event = new Event;
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

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaEventQuery(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const bool usable = start->timed && start->recorded && end->timed && end->recorded;
  if (!usable) return finish(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr) return finish(cudaErrorStreamCaptureUnsupported);
  if (stream->point.active()) return refuse(*stream->point.capture, cudaErrorStreamCaptureUnsupported);
  const auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  stream->point = {capture, {}};
  if (mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  capture->thread = std::this_thread::get_id();
  forbid_unsafe_calls(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->point.active()) return finish(cudaErrorInvalidValue);
  Capture& capture = *stream->point.capture;
  if (capture.origin != stream) return finish(cudaErrorStreamCaptureUnmatched);
  if (capture.thread != std::thread::id{} && capture.thread != std::this_thread::get_id())
    return finish(cudaErrorStreamCaptureWrongThread);
  capture.ended = true;
  const cudaError_t status = outcome(capture, stream->point.frontier);
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
  queue(stream, [executable] {
    Order& order = BlockRunner::here().order();
    order.refresh();
    executable->run(order);
  });
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

}  // namespace lockstep::emulation
