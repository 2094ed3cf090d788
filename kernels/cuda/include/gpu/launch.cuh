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

/// The first statement of every kernel. Returns when all kernels before this one in its stream or graph are complete
/// and what they wrote can be read: nothing that they touch may be read or written before. From 9.0 on it then lets
/// the next kernel begin, which gets as far as this. Machine code is tested for it (tests/kernels/machine_code).
__device__ inline void await_earlier_kernels() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// A number that the kernel only reads. It may come through the cache for constants (ld.global.nc) only where it is one
/// as long as the kernel exists: not from 9.0 on, where kernels exist before those that write it have ended.
template <typename T>
__device__ inline T load_input(const T* address) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return *address;
#else
  return __ldg(address);
#endif
}

/// Whether kernels that the calling thread launches may begin before those ahead of them in their stream have ended.
/// Of the thread, as a capture is (Stream::begin_capture()).
inline thread_local bool kernels_overlap = false;

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
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = kernels_overlap ? 1 : 0;
  LOCKSTEP_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace lockstep::cuda
