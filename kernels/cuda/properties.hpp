// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asking the CUDA runtime about devices. None of it makes a context, so none takes device memory.
#pragma once

#include "kernels/device.hpp"

#include <gpu/launch.cuh>

#include <string>
#include <vector>

namespace lockstep::LOCKSTEP_GPU {

/// How many devices this process sees; at least one.
/// @throws NoGpuError, DeviceError: why there is none and what to do
int device_count();

/// All but free_bytes.
DeviceProperties read_properties(int index);

/// [from][to]
std::vector<std::vector<PeerLink>> read_links();

/// "driver 13.0, runtime 13.0"
std::string read_versions();

}  // namespace lockstep::LOCKSTEP_GPU
