// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Division by a number that is known when a kernel is launched: one multiplication instead of twenty
/// instructions.
#pragma once

#include <gpu/launch.cuh>

#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

/// Source: Granlund, Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t multiplier = 1;  ///< floor(2^32 * (2^shift - value) / value) + 1
  std::uint32_t shift = 0;       ///< the least with 2^shift >= value

  Divisor() = default;
  /// @param divisor  at least 1
  explicit Divisor(int divisor) : value(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift) < value) ++shift;
    const std::uint64_t excess = (std::uint64_t{1} << shift) - value;
    multiplier = static_cast<std::uint32_t>((excess << 32) / value + 1);
  }
};

struct Division {
  std::uint32_t quotient, remainder;
};

/// @param number  below 2^31
__device__ inline Division divide(std::uint32_t number, const Divisor& by) {
  const auto high = static_cast<std::uint32_t>((std::uint64_t{number} * by.multiplier) >> 32);
  const std::uint32_t quotient = (high + number) >> by.shift;
  return {quotient, number - quotient * by.value};
}

}  // namespace lockstep::LOCKSTEP_GPU
