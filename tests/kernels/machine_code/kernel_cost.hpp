// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a kernel costs, as far as its machine code says: without a GPU, and so without its memory.
#pragma once

#include "tests/kernels/machine_code/cubin.hpp"

namespace lockstep::machine_code {

/// Of the loop that has most fused multiply-adds, and if none has any, most instructions; those of loops within it do
/// not count.
struct LoopCost {
  int instructions = 0, fmas = 0;

  /// Instructions, for each fma where there are any.
  double per_fma() const { return fmas > 0 ? 1.0 * instructions / fmas : instructions; }
};
LoopCost loop_cost(const CubinKernel& kernel);

/// How many warps of blocks of `warps` warps have registers and room on a multiprocessor at a time. Their shared
/// memory, which mostly depends on the launch, is not looked at.
int resident_warps(const CubinKernel& kernel, int warps);

/// Of the largest block that its launch bounds allow; 8 where there are none.
int warps_of_largest_block(const CubinKernel& kernel);

}  // namespace lockstep::machine_code
