// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names of a device's failures: messages, and which of CUDA's results blame the job, the machine or us.
#include "kernels/device_messages.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

// The words for missing drivers, old ones, hidden GPUs and memory that does not suffice.

namespace {

std::string otherwise() {
  return advice("or use {device}cpu or auto");
}

std::string gibibytes(std::size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Why there is no GPU, and what helps.
std::string find_cause(const FailedSearch& search) {
  if (search.driver_version == 0)
    return "CUDA driver not found: this machine has no NVIDIA driver (libcuda.so.1); install it, "
           "start a container with --gpus all";
  const std::string supported = version_text(search.driver_version);
  if (search.driver_version < search.runtime_version && search.error.starts_with("cudaErrorInsufficient"))
    return fmt::format(
        "the NVIDIA driver is too old: it supports CUDA {}, and this program was built with "
        "CUDA {}; update the driver, build with a CUDA toolkit it supports",
        supported, version_text(search.runtime_version));
  if (!search.error.starts_with("cudaErrorNoDevice"))
    return fmt::format("the GPUs of this machine cannot be used: {}; see nvidia-smi and dmesg", search.error);
  if (search.visible_devices)
    return fmt::format(
        "no GPU is visible: CUDA_VISIBLE_DEVICES is '{}', and no GPU of this machine is among "
        "these; unset it or name one that 'nvidia-smi -L' lists",
        printable_line(*search.visible_devices));
  return fmt::format(
      "no GPU is visible: there is an NVIDIA driver (CUDA {}), but it finds no GPU; see "
      "nvidia-smi, start a container with --gpus all, ask Slurm for --gpus-per-node",
      supported);
}

}  // namespace

std::string no_device_message(const FailedSearch& search) {
  return find_cause(search) + ", " + otherwise();
}

bool is_without_gpus(const FailedSearch& search) {
  if (search.driver_version == 0) return true;
  const std::string visible = search.visible_devices.value_or("all");
  return visible.empty() || visible == "-1" || visible == "NoDevFiles";
}

std::string unusable_device_message(const DeviceProperties& device, const CudaFailure& failure) {
  const std::string fix = device_error_advice(failure.name);
  return fmt::format(
      "GPU {} ({}, compute capability {}.{}) cannot run this program's kernels: {} ({}); {}, {}",
      device.index, device.name, device.compute_major, device.compute_minor, failure.name, failure.text,
      fix.empty() ? "see nvidia-smi and dmesg" : fix, otherwise());
}

std::string no_such_device_message(int index, std::span<const DeviceProperties> devices) {
  std::string names;
  for (const DeviceProperties& device : devices)
    names += fmt::format("{}index {}: {}", names.empty() ? "" : ", ", device.index, device.name);
  return fmt::format(
      "there is no GPU {}: this process sees {} ({}); use one of these, see "
      "CUDA_VISIBLE_DEVICES and 'lockstep devices'",
      index, counted(devices.size(), "GPU"), names);
}

std::string out_of_memory_message(const DeviceProperties& device, std::size_t wanted_bytes,
                                  std::size_t free_bytes) {
  return fmt::format(
      "GPU {} ({}) has too little memory: {} wanted, {} of {} free; use a smaller {}, "
      "more ranks or a larger GPU, and see with nvidia-smi who else uses it",
      device.index, device.name, gibibytes(wanted_bytes), gibibytes(free_bytes),
      gibibytes(device.total_bytes), spelling().global_batch);
}

std::string out_of_pinned_memory_message(std::size_t wanted_bytes) {
  return fmt::format(
      "this machine has too little memory: {} of pinned host memory wanted; start fewer ranks "
      "on it or raise its limit for locked memory (ulimit -l)",
      gibibytes(wanted_bytes));
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const std::array<unsigned char, 16>& bytes, const std::string& device_name) {
  std::string text = device_name.find(" MIG ") == std::string::npos ? "GPU" : "MIG";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// The table of the runtime's errors that are no fault of the program, with what helps.

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
