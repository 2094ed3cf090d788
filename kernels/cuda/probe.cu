// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asks for the attributes of a kernel that does nothing: whether there is code for this GPU shows in that.
#include "common/error.hpp"
#include "kernels/cuda/probe.hpp"
#include "kernels/device_messages.hpp"

namespace lockstep::LOCKSTEP_GPU {

namespace {

/// Like all others in that it is compiled for the same architectures.
__global__ void nothing() {}

}  // namespace

void expect_usable(const DeviceProperties& properties) {
  LOCKSTEP_CUDA(cudaSetDevice(properties.index));
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing);
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(
      unusable_device_message(properties, LOCKSTEP_CUDA_FAILURE(status, "cudaFuncGetAttributes")));
}

}  // namespace lockstep::LOCKSTEP_GPU
