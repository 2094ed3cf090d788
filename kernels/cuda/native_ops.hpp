// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of a device by the hand-written kernels of this folder.
#pragma once

#include "kernels/device_ops.hpp"

#include <gpu/launch.cuh>

#include <memory>

namespace lockstep::LOCKSTEP_GPU {

/// Borrows the device, and takes its streams only.
std::unique_ptr<DeviceOps> make_native_ops(Device& device);

}  // namespace lockstep::LOCKSTEP_GPU
