// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs the blocks of a launch, one after another.
#pragma once

#include "kernels/emulation/block.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/vector_types.hpp"

#include <cstddef>

namespace lockstep::emulation {

struct GridShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  CallSite call;  ///< of the launch
};

/// @throws InternalError if a GPU would refuse such a launch
void check_shape(const GridShape& shape);

/// Returns when all threads have ended.
/// @throws InternalError naming launch, block and thread: a barrier or warp operation that some thread never
///         reaches; a write just outside of a piece of shared or device memory
/// @throws DeviceError if this processor cannot run kernels at all
void run_grid(const GridShape& shape, const Kernel& kernel);

}  // namespace lockstep::emulation
