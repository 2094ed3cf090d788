// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Terms are split over limbs of 32 bits, carried only when the value is wanted, and rounded once.
#include "kernels/numerics/sums.hpp"

#include "common/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {

WideSum wide_term(double units) {
  LOCKSTEP_CHECK(std::abs(units) < 0x1p190);
  WideSum term;
  double rest = std::nearbyint(units);
  for (std::size_t limb = kWideLimbs; limb-- > 0 && rest != 0;) {
    const double unit = std::ldexp(1.0, static_cast<int>(limb) * kWideLimbBits);
    const double digit = std::trunc(rest / unit);  // exact: a division by a power of two
    term.limbs[limb] = static_cast<std::int64_t>(digit);
    rest -= digit * unit;
  }
  return term;
}

void WideSum::add(double units) {
  *this += wide_term(units);
}

WideSum& WideSum::operator+=(const WideSum& other) {
  for (std::size_t i = 0; i < limbs.size(); ++i) limbs[i] += other.limbs[i];
  carry();
  return *this;
}

void WideSum::carry() {
  for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
    const std::int64_t over = limbs[i] >> kWideLimbBits;  // rounds down
    limbs[i] &= 0xFFFF'FFFF;
    limbs[i + 1] += over;
  }
}

/// A long sum in units of 1.
double WideSum::value() const {
  static_assert(kWideLimbs < kLongSumLimbs);  // room for the carry; the last word counts refused terms
  std::int64_t words[kLongSumWords] = {};
  std::ranges::copy(limbs, words);
  return std::ldexp(long_sum_value(words), -kLongSumExponent);
}

}  // namespace lockstep
