// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// exp and log by fused multiply-adds alone, so that every GPU and the emulator compute the same bits; those
/// of math libraries differ. Source of the polynomials: Cephes, expf.c and logf.c (S. L. Moshier, 1984-1992).
#pragma once

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

/// 2^k for -126 <= k <= 127.
__device__ inline float power_of_two(int k) {
  return __int_as_float((k + 127) << 23);
}

/// e^x for x <= 0, within 2 units in the last place; NaN for NaN.
__device__ inline float exp_nonpositive(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;  // the sum is ln 2
  constexpr float kLeast = -104.0F;                                    // below it e^x rounds to 0
  const float clamped = fmaxf(x, kLeast);
  const float k = rintf(clamped * kLog2E);
  const float r = fmaf(k, -kLn2Low, fmaf(k, -kLn2High, clamped));
  float p = 1.9875691500e-4F;
  p = fmaf(p, r, 1.3981999507e-3F);
  p = fmaf(p, r, 8.3334519073e-3F);
  p = fmaf(p, r, 4.1665795894e-2F);
  p = fmaf(p, r, 1.6666665459e-1F);
  p = fmaf(p, r, 5.0000001201e-1F);
  const float e = fmaf(p, r * r, r) + 1.0F;
  const int power = static_cast<int>(k), half = power / 2;  // in two steps: 2^-150 is no float
  const float scaled = e * power_of_two(half) * power_of_two(power - half);
  return x > kLeast ? scaled : x <= kLeast ? 0.0F : x;  // no branch, so that several run side by side
}

/// ln x for finite x >= 1, within 2 units in the last place; NaN for NaN.
__device__ inline float log_from_one(float x) {
  constexpr float kSqrt2 = 1.41421356F;
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  if (x != x) return x;
  const int bits = __float_as_int(x);
  int exponent = (bits >> 23) - 127;
  float mantissa = __int_as_float((bits & 0x007FFFFF) | 0x3F800000);  // in [1, 2)
  if (mantissa > kSqrt2) {
    mantissa *= 0.5F;
    ++exponent;
  }
  const float r = mantissa - 1.0F, square = r * r, power = static_cast<float>(exponent);
  float p = 7.0376836292e-2F;
  p = fmaf(p, r, -1.1514610310e-1F);
  p = fmaf(p, r, 1.1676998740e-1F);
  p = fmaf(p, r, -1.2420140846e-1F);
  p = fmaf(p, r, 1.4249322787e-1F);
  p = fmaf(p, r, -1.6668057665e-1F);
  p = fmaf(p, r, 2.0000714765e-1F);
  p = fmaf(p, r, -2.4999993993e-1F);
  p = fmaf(p, r, 3.3333331174e-1F);
  p = fmaf(power, kLn2Low, p * r * square);
  p = fmaf(-0.5F, square, p);
  return fmaf(power, kLn2High, r + p);
}

}  // namespace lockstep::LOCKSTEP_GPU
