// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Functions whose last bits the C library would compute differently from machine to machine.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

/// The inverse of the standard normal distribution function, for 1e-11 <= p <= 1 - 1e-11: relative error
/// below 1e-6. Source: Wichura, Algorithm AS 241 (PPND7), Applied Statistics 37, 1988.
double normal_quantile(double p);
/// Natural logarithm of x > 0, relative error below 1e-14; the same bits on every machine.
double portable_log(double x);
/// e^x for |x| < 700, relative error below 1e-13.
double portable_exp(double x);
/// Cosine of 0 <= x <= pi, error below 1e-15.
double portable_cos(double x);
/// base^exponent for exponent >= 0, by multiplications alone.
double integer_power(double base, std::int64_t exponent);

// Fused multiply-add of floats without an instruction for it, by additions and multiplications that IEEE 754 rounds the
// same everywhere. kernels/cpu/multiply_add_inl.hpp has the same for vectors.

/// a * b + c, rounded once, to nearest even; which NaN a NaN is is not said.
///
/// The product of two floats is exact in double, the sum with c is rounded. Rounding that again, to float, gives what
/// one rounding of the exact sum would, if the first was to odd: where the sum is not exact, of its two neighbours
/// the one whose last bit is 1 (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
inline float software_fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b), term = c;
  const double sum = product + term;
  // The rounding error of the sum, exactly (Knuth's TwoSum); NaN where a number is infinite.
  const double part = sum - product;
  const double rest = (product - (sum - part)) + (term - part);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool is_inexact = rest < 0 || rest > 0;
  if (is_inexact && (bits & 1U) == 0) bits += (rest > 0) == (sum > 0) ? 1U : ~std::uint64_t{0};
  return static_cast<float>(std::bit_cast<double>(bits));
}

}  // namespace lockstep
