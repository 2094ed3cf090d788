// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adding up: tensors whose numbers are sums of products, and gradients that come from several places.
#pragma once

#include "tests/models/random_networks/bounded.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::test {

inline double square(double x) {
  return x * x;
}

/// Magnitudes and terms beside the numbers.
class SumsUnderWay {
 public:
  explicit SumsUnderWay(std::size_t size) : sums_(size), magnitude_(size), terms_(size) {}

  /// Adds a * b, where both may be off; rounding of a and of b is of different operations.
  void add(std::size_t i, double a, double a_variance, double a_tie, double b, double b_variance = 0) {
    sums_.value[i] += a * b;
    sums_.variance[i] += b * b * a_variance + a * a * b_variance;
    sums_.tie[i] += std::abs(b) * a_tie;
    magnitude_[i] += std::abs(a * b);
    terms_[i] += 1;
  }
  Bounded take() {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_.round(i, magnitude_[i], terms_[i]);
    return std::move(sums_);
  }

 private:
  Bounded sums_;
  std::vector<double> magnitude_, terms_;
};

/// dx[to] += factor * dy[from]
inline void add_gradient(Bounded& dx, std::size_t to, const Bounded& dy, std::size_t from, double factor) {
  const double sum = dx.value[to], term = factor * dy.value[from];
  dx.value[to] += term;
  dx.variance[to] += square(factor) * dy.variance[from];
  dx.tie[to] += std::abs(factor) * dy.tie[from];
  if (sum != 0 || factor != 1) dx.round(to, std::abs(sum) + std::abs(term), 1);
}

}  // namespace lockstep::test
