// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Terms are split over limbs of 32 bits, carried only when the value is wanted, and rounded once.
#include "kernels/numerics/sums.hpp"

#include "common/error.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::uint64_t kLimbMask = 0xFFFF'FFFFU;

/// The bits of a carried sum that is not negative, from bit `first` on: 64 of them.
std::uint64_t bits_from(const WideSum& sum, int first) {
  std::uint64_t bits = 0;
  for (int limb = 0; limb < kWideLimbs; ++limb) {
    const int shift = limb * kWideLimbBits - first;
    const auto value = static_cast<std::uint64_t>(sum.limbs[static_cast<std::size_t>(limb)]);
    if (shift >= 0 && shift < 64) bits |= value << shift;
    if (shift < 0 && shift > -64) bits |= value >> -shift;
  }
  return bits;
}

/// Bits of a carried sum that is not negative, without leading zeros.
int width_of(const WideSum& sum) {
  for (int limb = kWideLimbs; limb-- > 0;) {
    const auto value = static_cast<std::uint64_t>(sum.limbs[static_cast<std::size_t>(limb)]);
    if (value != 0) return limb * kWideLimbBits + static_cast<int>(std::bit_width(value));
  }
  return 0;
}

bool any_below(const WideSum& sum, int bit) {
  for (int limb = 0; limb * kWideLimbBits < bit; ++limb) {
    const int inside = bit - limb * kWideLimbBits;
    const std::uint64_t mask = inside >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << inside) - 1;
    if ((static_cast<std::uint64_t>(sum.limbs[static_cast<std::size_t>(limb)]) & mask) != 0) return true;
  }
  return false;
}

}  // namespace

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
    limbs[i] &= static_cast<std::int64_t>(kLimbMask);
    limbs[i + 1] += over;
  }
}

double WideSum::value() const {
  WideSum sum = *this;
  sum.carry();
  const bool negative = sum.limbs.back() < 0;
  if (negative) {
    for (std::int64_t& limb : sum.limbs) limb = -limb;
    sum.carry();
  }
  // The first 64 bits; what is cut off only matters as more than nothing.
  const int first = width_of(sum) > 64 ? width_of(sum) - 64 : 0;
  const std::uint64_t bits = bits_from(sum, first) | (any_below(sum, first) ? 1U : 0U);
  const double magnitude = std::ldexp(static_cast<double>(bits), first);
  return negative ? -magnitude : magnitude;
}

}  // namespace lockstep
