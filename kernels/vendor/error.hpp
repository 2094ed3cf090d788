// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The check around every call of cuDNN and cuBLAS.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

namespace lockstep::vendor {

/// A call as it stands in the source.
struct CallSite {
  const char* call;
  const char* file;
  int line;
};

/// @throws DeviceError    if the library, the GPU or its memory is the cause, with what to do about it
/// @throws InternalError  for any other failure
void check(cudnnStatus_t status, const CallSite& site);
void check(cublasStatus_t status, const CallSite& site);

/// For destructors: a failure is one line on standard error.
void log_failure(cudnnStatus_t status, const CallSite& site) noexcept;
void log_failure(cublasStatus_t status, const CallSite& site) noexcept;

}  // namespace lockstep::vendor

#define LOCKSTEP_VENDOR_CALL_SITE(...) \
  ::lockstep::vendor::CallSite {       \
#__VA_ARGS__, __FILE__, __LINE__   \
  }
#define LOCKSTEP_CUDNN(...) ::lockstep::vendor::check(__VA_ARGS__, LOCKSTEP_VENDOR_CALL_SITE(__VA_ARGS__))
#define LOCKSTEP_CUBLAS(...) ::lockstep::vendor::check(__VA_ARGS__, LOCKSTEP_VENDOR_CALL_SITE(__VA_ARGS__))
#define LOCKSTEP_VENDOR_NOEXCEPT(...) \
  ::lockstep::vendor::log_failure(__VA_ARGS__, LOCKSTEP_VENDOR_CALL_SITE(__VA_ARGS__))
