// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names of a device's failures: messages, and which of CUDA's results blame the job, the machine or us.
#pragma once

#include "kernels/device.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

// A failed call of the CUDA runtime. No CUDA header is needed; LOCKSTEP_CUDA() in
// kernels/cuda/error.hpp calls this.

struct CudaFailure {
  const char* name;  ///< "cudaErrorMemoryAllocation"
  const char* text;  ///< "out of memory"
  const char* call;  ///< its text in the source
  const char* file;
  int line;
};

/// Advice about an error whose cause is the GPU, its driver or its memory; empty for any other.
std::string device_error_advice(const char* name);

/// @throws DeviceError    if the GPU, its driver or its memory is the cause, with what to do about it
/// @throws InternalError  otherwise: a call that should not fail did, or a kernel went wrong
[[noreturn]] void throw_cuda_error(const CudaFailure& failure);

/// For destructors. A line on standard error; of several failures in a row with the same cause only the
/// first.
void log_cuda_error(const CudaFailure& failure) noexcept;

// Messages about devices: one line, the cause and what to do.

/// How a search for GPUs failed. Versions as CUDA counts them: 13000 is 13.0.
struct FailedSearch {
  std::string error;                           ///< "cudaErrorNoDevice (no CUDA-capable device is detected)"
  int driver_version = 0;                      ///< the newest CUDA it supports; 0: there is no driver
  int runtime_version = 0;                     ///< that the program was built with
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, if it is set
};
std::string no_device_message(const FailedSearch& search);
/// True where nothing is wrong. Either the machine has no driver for GPUs, or they are all hidden on purpose
/// (Slurm's "NoDevFiles" is for jobs that did not ask for one).
bool is_without_gpus(const FailedSearch& search);

/// @param devices  those that are there
std::string no_such_device_message(int index, std::span<const DeviceProperties> devices);

/// A device that is there and cannot run this program's kernels.
std::string unusable_device_message(const DeviceProperties& device, const CudaFailure& failure);

std::string out_of_memory_message(const DeviceProperties& device, std::size_t wanted_bytes,
                                  std::size_t free_bytes);
std::string out_of_pinned_memory_message(std::size_t wanted_bytes);

/// 13020 is "13.2".
std::string version_text(int version);

/// Formats it like nvidia-smi: "GPU-8f0c3f7a-...", or "MIG-..." for a slice of one, which its name gives away.
std::string uuid_text(const std::array<unsigned char, 16>& bytes, const std::string& device_name);

}  // namespace lockstep
