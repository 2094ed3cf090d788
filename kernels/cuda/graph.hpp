// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A captured series of operations in the form that the CUDA runtime launches.
#pragma once

#include "kernels/device.hpp"

#include <gpu/launch.cuh>

#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

class GpuGraph final : public Graph {
 public:
  /// Takes over what was captured, and queues the graph's transfer to the device, so that its first launch
  /// costs no more than the others.
  GpuGraph(cudaGraph_t captured, cudaStream_t stream);
  ~GpuGraph() override;
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  std::size_t nodes() const override { return nodes_; }
  void launch(cudaStream_t stream);

 private:
  cudaGraphExec_t handle_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace lockstep::LOCKSTEP_GPU
