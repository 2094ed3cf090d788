// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums: a grain's gradient is rounded once to 64-bit fixed point; from there on everything is integer
/// addition, which gives the same bits in any order, by any all-reduce algorithm, on any number of ranks.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep {

/// The unit of an exact sum is 2^exponent. Each tensor of the arena has its own, and begins with this one:
/// resolution 9.1e-13, far below fp32 rounding of the gradients of most networks. comm/gradient_units.hpp
/// moves it where they are of another size.
inline constexpr int kExactExponent = -40;
inline constexpr double kExactScale = 1099511627776.0;  // 2^40

/// Every float is a multiple of 2^-149: below that a unit could gain nothing.
inline constexpr int kLeastExactExponent = -149;

/// On a GPU a grain's gradient arrives in at most so many terms; on a CPU it is one. Limits allow for the
/// larger number, so that they are the same on every device.
inline constexpr int kPartialSums = 16;

/// How the terms of one tensor enter its sums.
struct ExactFormat {
  double scale = kExactScale;  ///< units in 1: 2^-exponent
  float limit = 0;  ///< |term| is below it, or the term is refused; infinity: any finite one may enter
};

/// The largest |term| that may enter such that the sum over `grains` grains cannot overflow: 2^62 units
/// divided by the number of terms. For 64 grains and units of 2^-40: 4,096. Infinity where it is beyond fp32.
inline float exact_limit(std::int64_t grains, int exponent = kExactExponent) {
  const double terms = static_cast<double>(grains < 1 ? 1 : grains) * kPartialSums;
  const double limit = std::ldexp(0x1p62 / terms, exponent);
  constexpr float kMost = std::numeric_limits<float>::max();
  return limit > double{kMost} ? std::numeric_limits<float>::infinity() : static_cast<float>(limit);
}

/// The format of sums in units of 2^exponent.
inline ExactFormat exact_format(std::int64_t grains, int exponent = kExactExponent) {
  return {std::ldexp(1.0, -exponent), exact_limit(grains, exponent)};
}

/// An exact sum as a floating-point number.
inline double from_exact(std::int64_t sum, int exponent = kExactExponent) {
  return std::ldexp(static_cast<double>(sum), exponent);
}

}  // namespace lockstep
