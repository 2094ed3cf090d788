// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adding to an exact sum from a kernel: one atomic addition of an integer, whose order does not matter.
#pragma once

#include "kernels/device_ops.hpp"

#include <gpu/launch.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

/// What atomicAdd calls a 64-bit integer. Two's complement makes it right for signed ones.
using AtomicWord = unsigned long long;

/// Adds an integer to one in device memory.
__device__ inline void add_integer(std::int64_t* sum, std::int64_t term) {
  atomicAdd(reinterpret_cast<AtomicWord*>(sum), static_cast<AtomicWord>(term));
}

/// round(term * scale), half to even. A float times a power of two is exact in double.
__device__ inline std::int64_t fixed_point(float term, const ExactFormat& format) {
  return __double2ll_rn(static_cast<double>(term) * format.scale);
}

/// 2^exponent, for exponents of normal numbers.
__device__ inline double double_power_of_two(int exponent) {
  return __hiloint2double((1023 + exponent) << 20, 0);
}

__device__ inline bool fits(float term, const ExactFormat& format) {
  return fabsf(term) < format.limit;
}

/// Counts a term that does not fit.
__device__ inline void refuse(float term, const Refusals& refusals) {
  add_integer(refusals.all, 1);
  if (refusals.of_tensor != nullptr) add_integer(refusals.of_tensor + (fabsf(term) < INFINITY ? 0 : 1), 1);
}

/// Adds a term to element i of the target's sums, or counts it as refused.
__device__ inline void add_exact(const ExactTarget& to, std::size_t i, float term) {
  if (!fits(term, to.format)) {
    refuse(term, to.refusals);
    return;
  }
  add_integer(to.sums + i, fixed_point(term, to.format));
}

}  // namespace lockstep::LOCKSTEP_GPU
