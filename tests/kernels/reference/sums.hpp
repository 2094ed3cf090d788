// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums in double precision, and how far a kernel may be from them.
#pragma once

#include "kernels/numerics/random.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::reference {

/// What an op should give, and for each output the sum of the |terms| it consists of: rounding errors scale
/// with it.
struct Sums {
  std::vector<double> value, magnitude;

  explicit Sums(std::size_t size = 0) : value(size), magnitude(size) {}
  void add(std::size_t i, double term) {
    value[i] += term;
    magnitude[i] += std::abs(term);
  }
};

/// Uniform in [-1, 1), exactly representable as float; stream `use` of `seed`.
inline std::vector<double> random_numbers(std::uint64_t seed, std::uint32_t use, std::size_t size) {
  std::vector<double> numbers(size);
  for (std::size_t i = 0; i < size; ++i) {
    const Philox4 bits = philox(seed, {{static_cast<std::uint32_t>(i / 4), use, 0, 0}});
    numbers[i] = 2.0 * static_cast<double>(uniform01(bits.value[i % 4])) - 1.0;
  }
  return numbers;
}

/// Empty if each |actual - expected| <= 1e-5 * magnitude; else the worst place, for the failure message.
inline std::string worst_difference(const Sums& expected, std::span<const float> actual) {
  constexpr double kTolerance = 1e-5;
  double worst = 0;
  std::size_t index = 0;
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    const double error = std::abs(expected.value[i] - static_cast<double>(actual[i]));
    const double allowed = kTolerance * expected.magnitude[i];
    double ratio = error == 0 ? 0 : error / allowed;
    if (std::isnan(ratio)) ratio = INFINITY;
    if (ratio > worst) {
      worst = ratio;
      index = i;
    }
  }
  if (worst <= 1) return {};
  std::ostringstream message;
  message << "worst index " << index << " of " << expected.value.size() << ": expected "
          << expected.value[index] << ", got " << actual[index] << ", which is " << worst
          << " times the tolerance";
  return message.str();
}

/// The loss whose gradient with respect to y is dy.
inline double weighted_sum(const std::vector<double>& dy, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

/// The gradient of a function that is linear in x, for which differences of any step are exact.
template <class F>
std::vector<double> linear_differences(const std::vector<double>& x, const F& f) {
  return finite_differences(x, f, 0.5);
}

inline double largest_error(const Sums& sums, const std::vector<double>& expected) {
  if (sums.value.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(sums.value[i] - expected[i]));
  }
  return largest;
}

}  // namespace lockstep::reference
