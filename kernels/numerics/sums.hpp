// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums, whose order leaves no trace. Gradients are summed in 64 bits, losses in 128, a batch's
/// moments in more.
#pragma once

#include "kernels/numerics/random.hpp"  // LOCKSTEP_HOST_DEVICE

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lockstep {

// Exact sums: a grain's gradient is rounded once to 64-bit fixed point. From there on everything is integer
// addition, which gives the same bits in any order, by any all-reduce algorithm, on any number of ranks.

/// The unit of an exact sum is 2^exponent. Each tensor of the arena has one, and begins with this one:
/// resolution 9.1e-13, far below fp32 rounding of the gradients of most networks. comm/reduce/gradient_units.hpp
/// moves it where they are of another size.
inline constexpr int kExactExponent = -40;
inline constexpr double kExactScale = 1099511627776.0;  // 2^40

/// Every float is a multiple of 2^-149: below that a unit could gain nothing.
inline constexpr int kLeastExactExponent = -149;
/// True of an exponent that a unit can have: those of floats.
inline bool is_exact_exponent(int exponent) {
  return exponent >= kLeastExactExponent && exponent <= 127;
}

/// On a GPU a grain's gradient arrives in at most so many terms; on a CPU it is one. Limits allow for the
/// larger number, so that they are the same on every device.
inline constexpr int kPartialSums = 16;

/// How the terms of one tensor enter its sums.
struct ExactFormat {
  double scale = kExactScale;  ///< units in 1: 2^-exponent
  float limit = 0;  ///< |term| is below it, or the term is refused; infinity: any finite one may enter
};

/// The largest |term| that may enter such that the sum over `grains` grains cannot overflow. It is 2^62 units
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

// A sum of integers up to 2^190: enough to add losses exactly, from 2^-32 nats to the largest float.

/// The loss as fixed point, in units of 2^-32 nats, a WideSum. Every finite float fits, and each sample's is rounded
/// by 10^-10.
inline constexpr double kLossScale = 4294967296.0;

inline constexpr int kWideLimbs = 6;
inline constexpr int kWideLimbBits = 32;

/// The integer sum of limbs[i] * 2^(32 i). Any limbs will do: those of several sums may be added one by one,
/// by any all-reduce of int64, as long as no limb overflows (2^31 terms of 32 bits do not).
struct WideSum {
  std::array<std::int64_t, kWideLimbs> limbs{};

  /// Adds `units` rounded half to even to an integer; finite, |units| < 2^190. Afterwards the sum is carried.
  void add(double units);
  WideSum& operator+=(const WideSum& other);
  /// Brings all limbs but the last into [0, 2^32), so that equal sums have equal limbs.
  void carry();
  /// The sum rounded once, half to even.
  double value() const;

  friend bool operator==(const WideSum&, const WideSum&) = default;
};

/// `units` as limbs of at most 32 bits each, all of its sign.
WideSum wide_term(double units);

// Sums of doubles that are the same bits in any order and of any size. Statistics over the
// global batch are made of them. One code for CPUs and GPUs.

/// A sum is this many int64: limbs of 32 bits of a multiple of 2^-160, least first. The last word counts the terms that
/// were not finite or not below 2^148. Words of several sums may be added one by one, by any all-reduce: a
/// limb has room for 2^31 terms. Every float is a multiple of 2^-149, so only products lose something.
inline constexpr int kLongSumLimbs = 10, kLongSumExponent = -160;
inline constexpr int kLongSumWords = kLongSumLimbs + 1;

/// A double as three neighbouring limbs, of its sign. Bits below 2^-160 are cut off.
struct LongSumTerm {
  int limb = 0;  ///< the limb that the first of them goes to; kLongSumLimbs: the term is refused
  std::int64_t parts[3] = {0, 0, 0};
};

LOCKSTEP_HOST_DEVICE inline LongSumTerm long_sum_term(double value) {
  constexpr int kMantissaBits = 52, kBias = 1023;
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  LongSumTerm term;
  const int exponent = static_cast<int>(bits >> kMantissaBits & 0x7FF);
  if (exponent == 0) return term;  // zero, or far below the unit
  int place = exponent - kBias - kMantissaBits - kLongSumExponent;
  if (place >= (kLongSumLimbs - 2) * 32) {
    term.limb = kLongSumLimbs;
    return term;
  }
  std::uint64_t mantissa = (bits & ((std::uint64_t{1} << kMantissaBits) - 1)) | std::uint64_t{1}
                                                                                    << kMantissaBits;
  if (place < 0) {
    mantissa = place > -64 ? mantissa >> -place : 0;
    place = 0;
  }
  const int shift = place % 32;
  const std::int64_t sign = bits >> 63 != 0 ? -1 : 1;
  constexpr std::uint64_t kLow = 0xFFFF'FFFF;
  term.limb = place / 32;
  term.parts[0] = sign * static_cast<std::int64_t>(mantissa << shift & kLow);
  term.parts[1] = sign * static_cast<std::int64_t>(mantissa >> (32 - shift) & kLow);
  term.parts[2] = shift == 0 ? 0 : sign * static_cast<std::int64_t>(mantissa >> (64 - shift));
  return term;
}

/// @param words  [kLongSumWords], used by this call alone meanwhile
inline void add_to_long_sum(double value, std::int64_t* words) {
  const LongSumTerm term = long_sum_term(value);
  if (term.limb == kLongSumLimbs) {
    ++words[kLongSumLimbs];
    return;
  }
  for (int i = 0; i < 3; ++i) words[term.limb + i] += term.parts[i];
}

/// 2^exponent, for exponents of normal numbers.
LOCKSTEP_HOST_DEVICE inline double double_of_exponent(int exponent) {
  const std::uint64_t bits = static_cast<std::uint64_t>(1023 + exponent) << 52;
  double value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Carries, so that each limb is in [0, 2^32). @returns the rest: 0, -1 for a negative sum, or more
/// where the limbs are too few
LOCKSTEP_HOST_DEVICE inline std::int64_t carry_long_sum(const std::int64_t* words, std::int64_t sign,
                                                        std::uint64_t* limbs) {
  std::int64_t carry = 0;
  for (int i = 0; i < kLongSumLimbs; ++i) {
    const std::int64_t word = sign * words[i] + carry;
    limbs[i] = static_cast<std::uint64_t>(word) & 0xFFFF'FFFF;
    carry = (word - static_cast<std::int64_t>(limbs[i])) / (std::int64_t{1} << 32);
  }
  return carry;
}

/// The sum rounded once, half to even; NaN if a term was refused.
/// @param words  [kLongSumWords]
LOCKSTEP_HOST_DEVICE inline double long_sum_value(const std::int64_t* words) {
  std::uint64_t limbs[kLongSumLimbs];
  std::int64_t carry = carry_long_sum(words, 1, limbs);
  const bool negative = carry < 0;
  if (negative) carry = carry_long_sum(words, -1, limbs);
  int top = kLongSumLimbs - 1;
  while (top > 0 && limbs[top] == 0) --top;
  std::uint64_t head = limbs[top] << 32 | (top > 0 ? limbs[top - 1] : 0);
  std::uint64_t next = top > 1 ? limbs[top - 2] : 0, rest = 0;
  for (int i = 0; i + 2 < top; ++i) rest |= limbs[i];
  int moved = 0;  // to the left, until the first bit is there
  for (; head != 0 && head >> 63 == 0; ++moved) {
    head = head << 1 | (next >> 31 & 1);
    next = next << 1 & 0xFFFF'FFFF;
  }
  if ((rest | next) != 0) head |= 1;  // the last one of 64 bits only matters as more than nothing
  const double magnitude =
      static_cast<double>(head) * double_of_exponent(kLongSumExponent + 32 * (top - 1) - moved);
  const bool refused = words[kLongSumLimbs] != 0 || carry > 0;
  return refused ? double_of_exponent(1024) * 0 : negative ? -magnitude : magnitude;  // infinity times 0
}

}  // namespace lockstep
