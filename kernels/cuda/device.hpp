// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One device over the CUDA runtime.
#pragma once

#include "kernels/device.hpp"

#include <gpu/launch.cuh>

#include <memory>

namespace lockstep::LOCKSTEP_GPU {

/// Makes the device's context, if this process has none yet.
/// @param properties  as read_properties() gave them
/// @throws DeviceError if the device or the kernels on it cannot be used (expect_usable())
std::unique_ptr<Device> make_device(const DeviceProperties& properties);

}  // namespace lockstep::LOCKSTEP_GPU
