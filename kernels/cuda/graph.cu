// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A capture is instantiated and uploaded once, then launched as often as wanted.
#include "kernels/cuda/graph.hpp"

#include <memory>
#include <type_traits>

namespace lockstep::LOCKSTEP_GPU {

namespace {

struct DestroyCaptured {
  void operator()(cudaGraph_t graph) const noexcept { LOCKSTEP_CUDA_NOEXCEPT(cudaGraphDestroy(graph)); }
};

}  // namespace

GpuGraph::GpuGraph(cudaGraph_t captured, cudaStream_t stream) {
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyCaptured> owner(captured);
  LOCKSTEP_CUDA(cudaGraphGetNodes(captured, nullptr, &nodes_));
  // Else all nodes would run at the launching stream's priority, not at those of the streams they came from.
  LOCKSTEP_CUDA(cudaGraphInstantiate(&handle_, captured, cudaGraphInstantiateFlagUseNodePriority));
  const cudaError_t uploaded = cudaGraphUpload(handle_, stream);
  if (uploaded != cudaSuccess) LOCKSTEP_CUDA_NOEXCEPT(cudaGraphExecDestroy(handle_));
  LOCKSTEP_CUDA(uploaded);
}

GpuGraph::~GpuGraph() {
  LOCKSTEP_CUDA_NOEXCEPT(cudaGraphExecDestroy(handle_));
}

void GpuGraph::launch(cudaStream_t stream) {
  LOCKSTEP_CUDA(cudaGraphLaunch(handle_, stream));
}

}  // namespace lockstep::LOCKSTEP_GPU
