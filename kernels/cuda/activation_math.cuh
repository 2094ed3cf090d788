// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of kernels/numerics/activation_math.inc for one number of a thread.
#pragma once

#include "kernels/shapes.hpp"

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

struct ScalarMath {
  using V = float;

  static __device__ inline V set(float x) { return x; }
  static __device__ inline V fma(V a, V b, V c) { return fmaf(a, b, c); }
  static __device__ inline V mul(V a, V b) { return a * b; }
  static __device__ inline V add(V a, V b) { return a + b; }
  static __device__ inline V sub(V a, V b) { return a - b; }
  static __device__ inline V div(V a, V b) { return a / b; }
  static __device__ inline V abs(V x) { return fabsf(x); }
  static __device__ inline V min(V a, V b) { return a < b ? a : b; }
  static __device__ inline V nearest(V x) { return rintf(x); }
  static __device__ inline V power_of_two(V x) { return __int_as_float((static_cast<int>(x) + 127) << 23); }
  static __device__ inline V select_below(V a, V b, V yes, V no) { return a < b ? yes : no; }
  static __device__ inline V copy_sign(V size, V sign) { return copysignf(size, sign); }
  static __device__ inline V number_or_zero(V x) { return x != x ? 0.0F : x; }
  static __device__ inline V nan_or(V x, V y) { return x != x ? x : y; }
  static __device__ inline V mantissa(V x) {
    return __int_as_float((__float_as_int(x) & 0x007FFFFF) | 0x3F800000);
  }
  static __device__ inline V exponent(V x) { return static_cast<float>((__float_as_int(x) >> 23) - 127); }
};

#define LOCKSTEP_LANES __device__ inline
#include "kernels/numerics/activation_math.inc"
#undef LOCKSTEP_LANES

// The functions of kernels/numerics/exp_log.inc for one number of a thread.

#define LOCKSTEP_LANES __device__ inline
#include "kernels/numerics/exp_log.inc"
#undef LOCKSTEP_LANES

/// e^x for x <= 0, within 2 units in the last place; NaN for NaN. No branch, so that several run side by side.
__device__ inline float exp_nonpositive(float x) {
  return exp_of_loss<ScalarMath>(x);
}

/// ln x for finite x >= 1, within 2 units in the last place; NaN for NaN.
__device__ inline float log_from_one(float x) {
  return log_of_loss<ScalarMath>(x);
}

}  // namespace lockstep::LOCKSTEP_GPU
