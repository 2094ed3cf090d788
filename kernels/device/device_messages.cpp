// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words for missing drivers, old ones, hidden GPUs and memory that does not suffice.
#include "kernels/device/device_messages.hpp"

#include "common/advice.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>

namespace lockstep {

namespace {

std::string otherwise() {
  return advice("or use {device}cpu or auto");
}

std::string gibibytes(std::size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string nothing_visible(const FailedSearch& search) {
  if (search.visible_devices) {
    return fmt::format(
        "no GPU is visible: CUDA_VISIBLE_DEVICES is '{}', and no GPU of this machine is among "
        "these; unset it or name one that 'nvidia-smi -L' lists, {}",
        *search.visible_devices, otherwise());
  }
  return fmt::format(
      "no GPU is visible: there is an NVIDIA driver (CUDA {}), but it finds no GPU; see "
      "nvidia-smi, start a container with --gpus all, ask Slurm for --gpus-per-node, {}",
      version_text(search.driver_version), otherwise());
}

}  // namespace

std::string no_device_message(const FailedSearch& search) {
  if (search.driver_version == 0) {
    return fmt::format(
        "CUDA driver not found: this machine has no NVIDIA driver (libcuda.so.1); install it, "
        "start a container with --gpus all, {}",
        otherwise());
  }
  if (search.driver_version < search.runtime_version && search.error.starts_with("cudaErrorInsufficient")) {
    return fmt::format(
        "the NVIDIA driver is too old: it supports CUDA {}, and this program was built with "
        "CUDA {}; update the driver, build with a CUDA toolkit it supports, {}",
        version_text(search.driver_version), version_text(search.runtime_version), otherwise());
  }
  if (search.error.starts_with("cudaErrorNoDevice")) return nothing_visible(search);
  return fmt::format("the GPUs of this machine cannot be used: {}; see nvidia-smi and dmesg, {}",
                     search.error, otherwise());
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

}  // namespace lockstep
