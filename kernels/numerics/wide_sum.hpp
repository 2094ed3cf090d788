// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A sum of integers up to 2^190: what it takes to add losses exactly, from 2^-32 nats to the largest float.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

/// The loss as fixed point, in units of 2^-32 nats, a WideSum: every finite float fits, and each sample's is rounded
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

}  // namespace lockstep
