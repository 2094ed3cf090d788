// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which statuses blame the installation or the memory, with what helps; all others are our own.
#include "kernels/vendor/error.hpp"

#include "common/advice.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace lockstep::vendor {
namespace {

/// What helps where the library, the GPU or its memory is the cause; null where it should not have failed.
const char* fix_of(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
      return "install all libraries of one version of cuDNN (libcudnn*.so) in one folder";
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH:
      return "install a version of cuDNN made for this GPU and its driver";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "use a smaller {global_batch} or a GPU with more free memory";
    default:
      return nullptr;
  }
}

const char* fix_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "install a version of cuBLAS made for this GPU and its driver";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "use a smaller {global_batch} or a GPU with more free memory";
    default:
      return nullptr;
  }
}

/// cuDNN knows more about its last failure than a status says, over several lines.
std::string describe(cudnnStatus_t status) {
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  std::string text = detail;
  text = text.substr(0, text.find('\n'));
  return cudnnGetErrorString(status) + (text.empty() ? std::string() : " (" + text + ")");
}

std::string describe(cublasStatus_t status) {
  return cublasGetStatusString(status);
}

template <typename Status>
std::string failure_text(Status status, const CallSite& site) {
  return fmt::format("{} failed: {} at {}:{}", site.call, describe(status), site.file, site.line);
}

template <typename Status>
[[noreturn]] void throw_failure(Status status, const CallSite& site) {
  if (const char* fix = fix_of(status)) {
    throw DeviceError(
        fmt::format("{}; {}, or use {}native", failure_text(status, site), advice(fix), spelling().kernels));
  }
  throw InternalError(fmt::format("internal error: {}; please report this", failure_text(status, site)));
}

template <typename Status>
void print_failure(Status status, const CallSite& site) noexcept {
  std::fprintf(stderr, "lockstep: warning: %s failed with status %d at %s:%d\n", site.call,
               static_cast<int>(status), site.file, site.line);
}

}  // namespace

void check(cudnnStatus_t status, const CallSite& site) {
  if (status != CUDNN_STATUS_SUCCESS) throw_failure(status, site);
}

void check(cublasStatus_t status, const CallSite& site) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_failure(status, site);
}

void log_failure(cudnnStatus_t status, const CallSite& site) noexcept {
  if (status != CUDNN_STATUS_SUCCESS) print_failure(status, site);
}

void log_failure(cublasStatus_t status, const CallSite& site) noexcept {
  if (status != CUBLAS_STATUS_SUCCESS) print_failure(status, site);
}

}  // namespace lockstep::vendor
