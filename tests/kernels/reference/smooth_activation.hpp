// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations with a curve in double, and numbers to try them on.
#pragma once

#include "kernels/activation.hpp"

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
                                                   {Activation::kSigmoid, "sigmoid", 4}};

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
