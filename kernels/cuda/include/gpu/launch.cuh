// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the kernels of kernels/cuda name themselves, start and share memory on a GPU. The emulator has a
/// header of the same name with the same contents for the host (kernels/emulation/include/gpu/launch.cuh).
#pragma once

#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>

#include <cstddef>

/// The namespace of everything in kernels/cuda: lockstep::cuda here, lockstep::emulated in the emulator.
#define LOCKSTEP_GPU cuda

/// `type name[count]` in the shared memory of a block, where count is a constant. Contents unspecified.
#define LOCKSTEP_SHARED(type, name, count) __shared__ type name[count]

/// `type* name`: the dynamic shared memory of the launch, aligned to 16 bytes. Once in a kernel.
#define LOCKSTEP_DYNAMIC_SHARED(type, name)                     \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  type* const name = reinterpret_cast<type*>(name##_bytes)

namespace lockstep::cuda {

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic
};

/// A number that the kernel only reads: it may come through the cache for constants (ld.global.nc).
template <typename T>
__device__ inline T load_input(const T* address) {
  return __ldg(address);
}

/// Queues kernel(args...) on the stream.
/// @throws InternalError if the launch is not possible
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  constexpr std::size_t kGrantedBytes = 48 * 1024;  // more must be asked for
  if (shape.shared_bytes > kGrantedBytes) {
    LOCKSTEP_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shape.shared_bytes)));
  }
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  LOCKSTEP_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace lockstep::cuda
