// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Products and sums of sizes that strangers choose: shapes in files, numbers in jobs.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace lockstep {

/// Stands for every size that 64 bits do not hold: it is beyond every limit.
inline constexpr std::uint64_t kTooLarge = std::numeric_limits<std::uint64_t>::max();

/// The product of all factors, or kTooLarge; also if one of them is negative, which no size is.
template <std::integral... Numbers>
constexpr std::uint64_t checked_product(Numbers... factors) {
  std::uint64_t product = 1;
  bool fits = true, is_zero = false;
  [[maybe_unused]] const auto multiply = [&](auto factor) {
    if constexpr (std::signed_integral<decltype(factor)>) fits = fits && factor >= 0;
    is_zero = is_zero || factor == 0;
    fits = fits && !__builtin_mul_overflow(product, static_cast<std::uint64_t>(factor), &product);
  };
  (multiply(factors), ...);
  if (!fits) return kTooLarge;
  return is_zero ? 0 : product;
}

/// The sum of all terms, or kTooLarge; also if one of them is negative.
template <std::integral... Numbers>
constexpr std::uint64_t checked_sum(Numbers... terms) {
  std::uint64_t sum = 0;
  bool fits = true;
  [[maybe_unused]] const auto add = [&](auto term) {
    if constexpr (std::signed_integral<decltype(term)>) fits = fits && term >= 0;
    fits = fits && !__builtin_add_overflow(sum, static_cast<std::uint64_t>(term), &sum);
  };
  (add(terms), ...);
  return fits ? sum : kTooLarge;
}

}  // namespace lockstep
