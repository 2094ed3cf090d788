// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Normal numbers without libm, whose last bits differ from machine to machine.
#include "data/draws.hpp"

#include <cmath>

namespace lockstep {
namespace {

/// ln(x) for 0 < x < 1 to about 1e-15: x = m 2^e with m in [1/sqrt(2), sqrt(2)), and
/// ln m = 2 artanh((m - 1) / (m + 1)).
double natural_log(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr double kRootHalf = 0.70710678118654752440;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < kRootHalf) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLn2 + 2 * t * sum;
}

/// In (-1, 1), never 0.
double symmetric(std::uint32_t bits) {
  return (static_cast<double>(bits) - 2147483647.5) / 2147483648.0;
}

}  // namespace

double Draws::normal() {
  for (;;) {
    const double u = symmetric(bits());
    const double v = symmetric(bits());
    const double square = u * u + v * v;
    if (square < 1) return u * std::sqrt(-2 * natural_log(square) / square);
  }
}

}  // namespace lockstep
