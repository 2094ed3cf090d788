// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations with a curve in double, and numbers to try them on.
#pragma once

#include "kernels/activation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::reference {

struct TriedActivation {
  Activation kind;
  const char* name;
  double units;  ///< of the last place that the kernel may be off
};

inline constexpr TriedActivation kActivations[] = {{Activation::kTanh, "tanh", 4},
                                                   {Activation::kSigmoid, "sigmoid", 4},
                                                   {Activation::kGelu, "gelu", 6},
                                                   {Activation::kGeluTanh, "gelu by tanh", 6}};

constexpr bool saves_input(Activation kind) {
  return kind != Activation::kTanh && kind != Activation::kSigmoid;
}

struct Curve {
  double value, slope;
  double condition =
      1;  ///< by how much more than itself an argument's own rounding moves the value, at least 1
};

inline Curve curve_of(Activation kind, double x) {
  switch (kind) {
    case Activation::kTanh: {
      const double y = std::tanh(x), c = std::cosh(std::min(std::abs(x), 300.0));
      return {y, 1 / (c * c)};
    }
    case Activation::kSigmoid: {
      const double y = x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
      return {y, y * (1 / (1 + std::exp(x)))};
    }
    case Activation::kGelu: {
      const double below = std::erfc(-x / std::sqrt(2.0)) / 2,
                   density = 0.3989422804014327 * std::exp(-x * x / 2);
      // A denormal share has lost digits, and x makes its last unit that much larger.
      const bool denormal = below < 1.2e-38;
      return {x * below, below + (density > 0 ? x * density : 0), denormal ? std::max(1.0, -x) : 1};
    }
    case Activation::kGeluTanh: {
      const double u = 1.5957691216057308 * (x + 0.044715 * x * x * x);
      const Curve logistic = curve_of(Activation::kSigmoid, u);
      const double inner = 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
      return {x * logistic.value, logistic.value + (logistic.slope > 0 ? x * logistic.slope * inner : 0),
              std::max(1.0, u < 0 ? -u : 0)};
    }
  }
  return {};
}

/// Of both signs and of every size: most between 2^-20 and 2^7, some denormal, some huge.
inline std::vector<float> spread_numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t mantissa = state >> 9 & 0x007FFFFFU, sign = state & 0x80000000U;
    const std::uint32_t exponent = i % 16 == 0 ? state % 255U : 107U + static_cast<std::uint32_t>(i % 27);
    numbers[i] = std::bit_cast<float>(sign | exponent << 23 | mantissa);
  }
  return numbers;
}

}  // namespace lockstep::reference
