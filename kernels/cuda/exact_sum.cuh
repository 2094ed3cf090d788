// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adding to an exact sum from a kernel: one atomic addition of an integer, whose order does not matter.
#pragma once

#include "kernels/exact_sum.hpp"

#include <gpu/launch.cuh>

#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

/// What atomicAdd calls a 64-bit integer. Two's complement makes it right for signed ones.
using AtomicWord = unsigned long long;

/// Adds an integer to one in device memory.
__device__ inline void add_integer(std::int64_t* sum, std::int64_t term) {
  atomicAdd(reinterpret_cast<AtomicWord*>(sum), static_cast<AtomicWord>(term));
}

/// round(term * 2^40), half to even; |term| < 2^22. A float times 2^40 is exact in double.
__device__ inline std::int64_t fixed_point(float term) {
  return __double2ll_rn(static_cast<double>(term) * kExactScale);
}

/// Adds round(term * 2^40), half to even; or, if |term| >= limit or it is NaN, 1 to *refused.
__device__ inline void add_exact(std::int64_t* sum, float term, float limit, std::int64_t* refused) {
  if (!(fabsf(term) < limit)) {
    add_integer(refused, 1);
    return;
  }
  add_integer(sum, fixed_point(term));
}

}  // namespace lockstep::LOCKSTEP_GPU
