// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// By arithmetic that IEEE 754 rounds the same everywhere: no function of the C library but the square root.
#include "kernels/numerics/portable_math.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

double portable_log(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kSqrtHalf = 0.707106781186547524401;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  // log(m) = 2 artanh(t), |t| <= 0.172: 12 terms of its series reach double precision.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double square = t * t;
  double sum = 0;
  for (int power = 23; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * kLn2 + 2 * t * sum;
}

double portable_exp(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  const double k = std::nearbyint(x / kLn2);
  const double r = x - k * kLn2;  // |r| <= 0.35: 18 terms of the series reach double precision
  double sum = 1;
  for (int n = 18; n >= 1; --n) sum = sum * r / n + 1;
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_cos(double x) {
  constexpr double kPi = 3.14159265358979323846;
  const bool is_obtuse = x > kPi / 2;
  const double square = is_obtuse ? (kPi - x) * (kPi - x) : x * x;
  double sum = 1;
  for (int n = 24; n >= 2; n -= 2) sum = 1 - sum * square / (n * (n - 1));
  return is_obtuse ? -sum : sum;
}

double integer_power(double base, std::int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power *= base;
    base *= base;
  }
  return power;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    const double above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179;
    const double below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1;
    return q * above / below;
  }
  const double tail = std::min(p, 1 - p);
  const double r = std::sqrt(-portable_log(tail)) - 1.6;
  const double above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777;
  const double below = (0.12021132975 * r + 0.73700164250) * r + 1;
  return q < 0 ? -above / below : above / below;
}

}  // namespace lockstep
