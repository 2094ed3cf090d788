// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small tensors for kernel tests: random numbers from a seed, double copies, comparison that names the worst
/// element.
#pragma once

#include "common/aligned_buffer.hpp"
#include "gtest/gtest.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace lockstep::reference {

/// Normal numbers.
inline AlignedBuffer<float> random_tensor(std::size_t size, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  AlignedBuffer<float> tensor(size);
  for (float& value : tensor.span()) value = normal(generator);
  return tensor;
}

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// |actual - expected| <= tolerance * (1 + |expected|) everywhere; NaN is never near.
inline ::testing::AssertionResult all_near(std::span<const float> actual, std::span<const double> expected,
                                           double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << "sizes differ: " << actual.size() << " and " << expected.size();
  }
  double worst = 0;
  std::size_t worst_index = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]) / (1 + std::abs(expected[i]));
    if (error <= worst) continue;
    worst_index = i;
    worst = error;
    if (std::isnan(error)) break;
  }
  if (worst <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "worst at index " << worst_index << ": " << actual[worst_index] << " instead of "
         << expected[worst_index] << ", error " << worst << ", allowed " << tolerance;
}

/// Central differences of a function of many numbers: d f(x) / d x[i].
template <class Function>
std::vector<double> finite_differences(std::vector<double> x, const Function& f, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    gradient[i] = (above - f(x)) / (2 * step);
    x[i] = at;
  }
  return gradient;
}

}  // namespace lockstep::reference
