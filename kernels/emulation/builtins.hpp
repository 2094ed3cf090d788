// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The built-in variables of a kernel: those of the thread that runs now on this OS thread.
#pragma once

#include "kernels/emulation/vector_types.hpp"

namespace lockstep::emulation {

extern constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

}  // namespace lockstep::emulation
