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

#define NAMED(status) status, #status

constexpr StatusText kTexts[] = {
    {NAMED(cudaSuccess), "no error"},
    {NAMED(cudaErrorInvalidValue), "invalid argument"},
    {NAMED(cudaErrorMemoryAllocation), "out of memory"},
    {NAMED(cudaErrorNoDevice), "no CUDA-capable device is detected"},
    {NAMED(cudaErrorInvalidDevice), "invalid device ordinal"},
    {NAMED(cudaErrorNoKernelImageForDevice), "no kernel image is available for execution on the device"},
    {NAMED(cudaErrorInvalidResourceHandle), "invalid resource handle"},
    {NAMED(cudaErrorNotReady), "device not ready"},
    {NAMED(cudaErrorStreamCaptureUnsupported), "operation not permitted when stream is capturing"},
    {NAMED(cudaErrorStreamCaptureInvalidated), "operation failed due to a previous error during capture"},
    {NAMED(cudaErrorStreamCaptureMerge), "operation would result in a merge of separate capture sequences"},
    {NAMED(cudaErrorStreamCaptureUnmatched), "capture was not ended in the same stream as it began"},
    {NAMED(cudaErrorStreamCaptureUnjoined), "capturing stream has unjoined work"},
    {NAMED(cudaErrorStreamCaptureIsolation), "dependency created on uncaptured work in another stream"},
    {NAMED(cudaErrorCapturedEvent),
     "operation not permitted on an event last recorded in a capturing stream"},
    {NAMED(cudaErrorStreamCaptureWrongThread),
     "attempt to terminate a thread-local capture sequence from another thread"},
};
#undef NAMED

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
