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

/// Reports a call that fails. The runtime's note of the error is cleared, so that no later call reports it.
#define LOCKSTEP_CUDA_CALL(report, text, ...)                           \
  do {                                                                  \
    const cudaError_t lockstep_status = (__VA_ARGS__);                  \
    if (lockstep_status != cudaSuccess) {                               \
      static_cast<void>(cudaGetLastError());                            \
      ::lockstep::report(LOCKSTEP_CUDA_FAILURE(lockstep_status, text)); \
    }                                                                   \
  } while (false)

/// Throws if the call fails: DeviceError or InternalError, see throw_cuda_error().
#define LOCKSTEP_CUDA(...) LOCKSTEP_CUDA_CALL(throw_cuda_error, #__VA_ARGS__, __VA_ARGS__)

/// For destructors: a failure is one line on standard error.
#define LOCKSTEP_CUDA_NOEXCEPT(...) LOCKSTEP_CUDA_CALL(log_cuda_error, #__VA_ARGS__, __VA_ARGS__)
