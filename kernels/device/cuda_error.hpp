// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What becomes of a failed call of the CUDA runtime. No CUDA header is needed; LOCKSTEP_CUDA() in
/// kernels/cuda/error.hpp comes here.
#pragma once

#include <string>

namespace lockstep {

struct CudaFailure {
  const char* name;  ///< "cudaErrorMemoryAllocation"
  const char* text;  ///< "out of memory"
  const char* call;  ///< as it stands in the source
  const char* file;
  int line;
};

/// What to do about an error whose cause is the GPU, its driver or its memory; empty for any other.
std::string device_error_advice(const char* name);

/// @throws DeviceError    if the GPU, its driver or its memory is the cause, with what to do about it
/// @throws InternalError  otherwise: a call that should not fail did, or a kernel went wrong
[[noreturn]] void throw_cuda_error(const CudaFailure& failure);

/// For destructors. A line on standard error; of several failures in a row with the same cause only the
/// first.
void log_cuda_error(const CudaFailure& failure) noexcept;

}  // namespace lockstep
