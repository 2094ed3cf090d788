// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The contract of kernels/device.hpp over the CUDA runtime. Devices found and tried, their streams, events and
/// graphs, and the ops on them.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::LOCKSTEP_GPU {

// Questions to the CUDA runtime about devices. None of it makes a context, so none uses device memory.

/// How many devices this process sees; at least one.
/// @throws NoGpuError, DeviceError: why there is none and what to do
int device_count();

/// All but free_bytes and overlaps_kernels.
DeviceProperties read_properties(int index);

/// [from][to]
std::vector<std::vector<PeerLink>> read_links();

/// "driver 13.0, runtime 13.0"
std::string read_versions();

// Test of a GPU: can it run the kernels of this program?

/// Asks for one kernel, which loads its machine code, or compiles it from PTX. A GPU that the program was not
/// built for, or a driver that does not understand it, shows here and not in the middle of a run. Makes the
/// device's context.
/// @throws DeviceError  one line: which GPU, why not, and what to do
void expect_usable(const DeviceProperties& properties);

// One device over the CUDA runtime.

/// Makes the device's context, if this process has none yet.
/// @param properties  result of read_properties()
/// @throws DeviceError if the device or the kernels on it cannot be used (expect_usable())
std::unique_ptr<Device> make_device(const DeviceProperties& properties);

// Streams, events and graphs over the CUDA runtime.

std::unique_ptr<Stream> make_stream(int device, Device::Priority priority);
std::unique_ptr<Event> make_event(int device, Device::Timing timing);

// A captured series of operations in the form that the CUDA runtime launches.

class GpuGraph final : public Graph {
 public:
  /// Takes ownership of what was captured, and queues the graph's transfer to the device. So its first launch
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

// The ops of a device by the hand-written kernels of this folder.

/// Borrows the device, and uses its streams only.
std::unique_ptr<DeviceOps> make_native_ops(Device& device);

}  // namespace lockstep::LOCKSTEP_GPU
