// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers in double, each with how far a correct fp32 computation may be from it.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep::test {

/// Two kinds of distance, which must not be mixed:
/// - rounding: the variance of the errors that fp32 adds, as if they were independent. Whoever compares
/// allows
///   kSigmas of its square root.
/// - tie: where relu or max-pool decide by a number that rounding may put on either side, the gradient may go
/// one
///   way or the other. This is how far the other way is; it adds up linearly. Zero where nothing was tied.
struct Bounded {
  std::vector<double> value, variance, tie;

  static constexpr double kSigmas = 8;
  static constexpr double kUnit = 1.0 / 16777216;  ///< 2^-24, the rounding error of fp32

  explicit Bounded(std::size_t size = 0) : value(size), variance(size), tie(size) {}
  std::size_t size() const { return value.size(); }
  /// How far fp32 may be from value[i].
  double allowed(std::size_t i) const { return kSigmas * std::sqrt(variance[i]) + tie[i]; }

  /// This sum of `terms` terms whose magnitudes add up to `magnitude` was rounded on the way: each addition
  /// rounds a partial sum, and few of those are as large as all magnitudes together.
  void round(std::size_t i, double magnitude, double terms) {
    const double error = kUnit * magnitude * (1 + std::sqrt(terms) / 4);
    variance[i] += error * error;
  }
};

}  // namespace lockstep::test
