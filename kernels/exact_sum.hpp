// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums: a grain's gradient is rounded once to 64-bit fixed point; from there on everything is integer
/// addition, which gives the same bits in any order, by any all-reduce algorithm, on any number of ranks.
#pragma once

#include <cstdint>

namespace lockstep {

/// Fixed point with 40 fractional bits: resolution 9.1e-13, far below fp32 rounding of any gradient that
/// matters.
inline constexpr int kExactFractionBits = 40;
inline constexpr double kExactScale = 1099511627776.0;  // 2^40

/// The largest |term| that may enter an exact sum of `terms` terms such that the sum cannot overflow:
/// 2^62 / terms, in units of 2^-40. With 64 grains a global batch: 65,536.
constexpr float exact_limit(std::int64_t terms) {
  return static_cast<float>(4194304.0 / static_cast<double>(terms < 1 ? 1 : terms));  // 2^62 / 2^40 = 2^22
}

/// An exact sum as a floating-point number.
constexpr double from_exact(std::int64_t sum) {
  return static_cast<double>(sum) / kExactScale;
}

}  // namespace lockstep
