// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of the runtime's errors that are no fault of the program, with what helps.
#include "kernels/device/cuda_error.hpp"

#include "common/advice.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

namespace {

struct Advice {
  std::string_view name;
  const char* text;
};

constexpr const char* kUpdateDriver = "update the NVIDIA driver, or build with the CUDA toolkit it supports";
constexpr const char* kRestartDriver =
    "its driver and its libraries do not match: restart the machine, or install the driver again";
constexpr const char* kBroken = "its hardware reports a fault: see dmesg and nvidia-smi, use another GPU";
constexpr const char* kMps =
    "see the state of the Multi-Process Service (nvidia-cuda-mps-control), or stop it";

/// The errors whose cause is the GPU, its driver or its memory, and what helps.
constexpr Advice kDeviceErrors[] = {
    {"cudaErrorMemoryAllocation", "use a smaller {global_batch}, more ranks or a GPU with more free memory"},
    {"cudaErrorNoDevice", "'lockstep devices' says why; or use {device}cpu"},
    {"cudaErrorInsufficientDriver", kUpdateDriver},
    {"cudaErrorCallRequiresNewerDriver", kUpdateDriver},
    {"cudaErrorUnsupportedPtxVersion", kUpdateDriver},
    {"cudaErrorIncompatibleDriverContext", kUpdateDriver},
    {"cudaErrorJitCompilerNotFound",
     "install the driver's libnvidia-ptxjitcompiler.so.1, or build for this GPU: "
     "cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native"},
    {"cudaErrorJitCompilationDisabled",
     "unset CUDA_DISABLE_PTX_JIT, or build for this GPU: cmake --preset release "
     "-DCMAKE_CUDA_ARCHITECTURES=native"},
    {"cudaErrorNoKernelImageForDevice",
     "the program was not built for this kind of GPU: build it here with cmake --preset release "
     "-DCMAKE_CUDA_ARCHITECTURES=native and a CUDA toolkit that knows it (CUDA 13: compute capability 7.5 "
     "and newer)"},
    {"cudaErrorStubLibrary", "libcuda.so.1 is the toolkit's stub: take its folder out of LD_LIBRARY_PATH"},
    {"cudaErrorDevicesUnavailable", "another process holds the GPU (compute mode exclusive): see nvidia-smi"},
    {"cudaErrorInitializationError", "the driver does not start: see nvidia-smi and dmesg"},
    {"cudaErrorOperatingSystem", "the driver does not start: see nvidia-smi and dmesg"},
    {"cudaErrorSystemNotReady", "a service of the GPUs is not running: start nvidia-fabricmanager"},
    {"cudaErrorSystemDriverMismatch", kRestartDriver},
    {"cudaErrorCompatNotSupportedOnDevice", kUpdateDriver},
    {"cudaErrorECCUncorrectable", kBroken},
    {"cudaErrorNvlinkUncorrectable", kBroken},
    {"cudaErrorContained", kBroken},
    {"cudaErrorMpsConnectionFailed", kMps},
    {"cudaErrorMpsRpcFailure", kMps},
    {"cudaErrorMpsServerNotReady", kMps},
    {"cudaErrorMpsMaxClientsReached", kMps},
    {"cudaErrorMpsMaxConnectionsReached", kMps},
    {"cudaErrorMpsClientTerminated", kMps},
};

std::string describe(const CudaFailure& failure) {
  return fmt::format("{} failed: {} ({}) at {}:{}", failure.call, failure.name, failure.text, failure.file,
                     failure.line);
}

}  // namespace

std::string device_error_advice(const char* name) {
  for (const Advice& row : kDeviceErrors)
    if (row.name == name) return advice(row.text);
  return {};
}

void throw_cuda_error(const CudaFailure& failure) {
  if (const auto fix = device_error_advice(failure.name); !fix.empty()) {
    throw DeviceError(fmt::format("the GPU cannot be used: {}; {}", describe(failure), fix));
  }
  throw InternalError(fmt::format("internal error: {}; please report this", describe(failure)));
}

void log_cuda_error(const CudaFailure& failure) noexcept {
  // A device that is lost fails every call; a process that ends may have unloaded the runtime already.
  static std::atomic<std::size_t> last_cause{0};
  const std::string_view name = failure.name;
  const std::size_t cause = std::hash<std::string_view>{}(name);
  if (name == "cudaErrorCudartUnloading" || last_cause.exchange(cause) == cause) return;
  std::fprintf(stderr, "lockstep: warning: %s failed: %s (%s) at %s:%d\n", failure.call, failure.name,
               failure.text, failure.file, failure.line);
}

}  // namespace lockstep
