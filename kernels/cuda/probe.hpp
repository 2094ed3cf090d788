// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whether a GPU can run the kernels of this program.
#pragma once

#include "kernels/device.hpp"

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

/// Asks for one kernel, which loads its machine code, or compiles it from PTX: a GPU that the program was not
/// built for, or a driver that does not understand it, shows here and not in the middle of a run. Makes the
/// device's context.
/// @throws DeviceError  one line: which GPU, why not, and what to do
void expect_usable(const DeviceProperties& properties);

}  // namespace lockstep::LOCKSTEP_GPU
