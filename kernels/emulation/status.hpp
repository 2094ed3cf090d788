// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the functions of the runtime return.
#pragma once

#include "kernels/emulation/runtime_types.hpp"

namespace lockstep::emulation {

/// Notes a failure for cudaGetLastError(); returns its argument.
cudaError_t finish(cudaError_t status);

}  // namespace lockstep::emulation
