// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams, events, and graphs captured from them.
#include "kernels/emulation/block.hpp"
#include "kernels/emulation/runtime_api.hpp"
#include "kernels/emulation/status.hpp"
#include "kernels/emulation/stream.hpp"

#include <memory>
#include <utility>

namespace lockstep::emulation {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new Stream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const bool capturing = stream != nullptr && stream->point.active();
  return finish(capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  CapturePoint& point = stream->point;
  if (!event->point.active())
    return finish(point.active() && event->recorded ? cudaErrorStreamCaptureIsolation : cudaSuccess);
  if (point.active() && point.capture != event->point.capture) return finish(cudaErrorStreamCaptureMerge);
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
  return finish(event->point.capture != nullptr ? cudaErrorCapturedEvent : cudaSuccess);
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

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  if (stream == nullptr || stream->point.active()) return finish(cudaErrorStreamCaptureUnsupported);
  stream->point = {std::make_shared<Capture>(), {}};
  stream->point.capture->origin = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->point.active()) return finish(cudaErrorInvalidValue);
  Capture& capture = *stream->point.capture;
  if (capture.origin != stream) return finish(cudaErrorStreamCaptureUnmatched);
  capture.ended = true;
  const bool joined = capture.graph.covered_by(stream->point.frontier);
  if (joined) *graph = new OperationGraph(std::move(capture.graph));
  stream->point = {};
  return finish(joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void* nodes, std::size_t* count) {
  if (nodes != nullptr) return finish(cudaErrorInvalidValue);
  *count = graph->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
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
