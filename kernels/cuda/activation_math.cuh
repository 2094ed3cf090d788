// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of kernels/numerics/activation_math.inc and exp_log.inc for one number of a thread. They have no
/// branches, so that several run side by side.
#pragma once

#include "kernels/shapes.hpp"

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

/// The compiler fuses nothing by itself (--fmad=false), and rounds quotients and roots once.
struct ScalarMath {
  using V = float;

  static __device__ inline V set(float x) { return x; }
  static __device__ inline V fma(V a, V b, V c) { return fmaf(a, b, c); }
  static __device__ inline V mul(V a, V b) { return a * b; }
  static __device__ inline V add(V a, V b) { return a + b; }
  static __device__ inline V sub(V a, V b) { return a - b; }
  static __device__ inline V div(V a, V b) { return a / b; }
  static __device__ inline V sqrt(V x) { return sqrtf(x); }
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
#include "kernels/numerics/exp_log.inc"
#undef LOCKSTEP_LANES

}  // namespace lockstep::LOCKSTEP_GPU
