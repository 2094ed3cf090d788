// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The check around every call of the CUDA runtime.
#pragma once

#include "kernels/device_messages.hpp"

#include <cuda_runtime.h>

/// A failed call, for the functions of kernels/device_messages.hpp.
#define LOCKSTEP_CUDA_FAILURE(status, call)                                        \
  ::lockstep::CudaFailure {                                                        \
    cudaGetErrorName(status), cudaGetErrorString(status), call, __FILE__, __LINE__ \
  }

/// Throws if the call fails: DeviceError or InternalError, see throw_cuda_error(). The runtime's note of the
/// error is cleared, so that no later call reports it.
#define LOCKSTEP_CUDA(...)                                                                \
  do {                                                                                    \
    const cudaError_t lockstep_status = (__VA_ARGS__);                                    \
    if (lockstep_status != cudaSuccess) {                                                 \
      static_cast<void>(cudaGetLastError());                                              \
      ::lockstep::throw_cuda_error(LOCKSTEP_CUDA_FAILURE(lockstep_status, #__VA_ARGS__)); \
    }                                                                                     \
  } while (false)

/// For destructors: a failure is one line on standard error.
#define LOCKSTEP_CUDA_NOEXCEPT(...)                                                     \
  do {                                                                                  \
    const cudaError_t lockstep_status = (__VA_ARGS__);                                  \
    if (lockstep_status != cudaSuccess) {                                               \
      static_cast<void>(cudaGetLastError());                                            \
      ::lockstep::log_cuda_error(LOCKSTEP_CUDA_FAILURE(lockstep_status, #__VA_ARGS__)); \
    }                                                                                   \
  } while (false)
