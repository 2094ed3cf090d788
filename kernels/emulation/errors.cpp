// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Errors of the emulated runtime as CUDA reports them, and the place in a kernel that a message names.
#include "kernels/emulation/errors.hpp"

#include "kernels/emulation/runtime_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace lockstep::emulation {

// Names and texts of errors, and the last one of each thread.

namespace {

struct StatusText {
  cudaError_t status;
  const char* name;
  const char* text;
};

constexpr StatusText kUnknown = {cudaSuccess, "unrecognized error code", "unrecognized error code"};

/// A status with its name.
#define LOCKSTEP_STATUS(name) name, #name

constexpr StatusText kTexts[] = {
    {LOCKSTEP_STATUS(cudaSuccess), "no error"},
    {LOCKSTEP_STATUS(cudaErrorInvalidValue), "invalid argument"},
    {LOCKSTEP_STATUS(cudaErrorMemoryAllocation), "out of memory"},
    {LOCKSTEP_STATUS(cudaErrorNoDevice), "no CUDA-capable device is detected"},
    {LOCKSTEP_STATUS(cudaErrorInvalidDevice), "invalid device ordinal"},
    {LOCKSTEP_STATUS(cudaErrorNoKernelImageForDevice),
     "no kernel image is available for execution on the device"},
    {LOCKSTEP_STATUS(cudaErrorInvalidResourceHandle), "invalid resource handle"},
    {LOCKSTEP_STATUS(cudaErrorNotReady), "device not ready"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureUnsupported), "operation not permitted when stream is capturing"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureInvalidated),
     "operation failed due to a previous error during capture"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureMerge),
     "operation would result in a merge of separate capture sequences"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureUnmatched),
     "capture was not ended in the same stream as it began"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureUnjoined), "capturing stream has unjoined work"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureIsolation),
     "dependency created on uncaptured work in another stream"},
    {LOCKSTEP_STATUS(cudaErrorCapturedEvent),
     "operation not permitted on an event last recorded in a capturing stream"},
    {LOCKSTEP_STATUS(cudaErrorStreamCaptureWrongThread),
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const StatusText& text_of(cudaError_t status) {
  const auto* found = std::find_if(std::begin(kTexts), std::end(kTexts),
                                   [status](const StatusText& text) { return text.status == status; });
  return found == std::end(kTexts) ? kUnknown : *found;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t finish(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

const char* cudaGetErrorName(cudaError_t status) {
  return text_of(status).name;
}

const char* cudaGetErrorString(cudaError_t status) {
  return text_of(status).text;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

// Places in words: file and line.

std::string to_string(const CallSite& call) {
  const std::string_view file = call.file;
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), call.line);
}

}  // namespace lockstep::emulation
