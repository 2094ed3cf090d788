// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Functions whose last bits the C library would compute differently from machine to machine.
#pragma once

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

}  // namespace lockstep
