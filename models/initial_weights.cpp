// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// InitialWeights, and the two functions that the C library would not compute alike everywhere.
#include "models/initial_weights.hpp"

#include "kernels/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {

double portable_log(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kSqrtHalf = 0.707106781186547524401;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  // log(m) = 2 artanh(t), |t| <= 0.172: 12 terms of its series reach double precision.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double square = t * t;
  double sum = 0;
  for (int power = 23; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * kLn2 + 2 * t * sum;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    const double above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179;
    const double below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1;
    return q * above / below;
  }
  const double tail = std::min(p, 1 - p);
  const double r = std::sqrt(-portable_log(tail)) - 1.6;
  const double above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777;
  const double below = (0.12021132975 * r + 0.73700164250) * r + 1;
  return q < 0 ? -above / below : above / below;
}

template <typename Make>
void InitialWeights::fill(std::span<float> weights, Make make) const {
  const std::uint32_t stream = random_stream(RandomUse::kInitialise, parameter_);
  for (std::size_t first = 0; first < weights.size(); first += 4) {
    const Philox4 block = philox(seed_, {{static_cast<std::uint32_t>(first / 4), 0, stream, 0}});
    const std::size_t count = std::min<std::size_t>(4, weights.size() - first);
    for (std::size_t i = 0; i < count; ++i) weights[first + i] = static_cast<float>(make(block.value[i]));
  }
}

void InitialWeights::fill_uniform(int fan_in, std::span<float> weights) const {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  fill(weights, [bound](std::uint32_t word) { return (2.0 * uniform01(word) - 1) * bound; });
}

void InitialWeights::fill_normal(double std, std::span<float> weights) const {
  fill(weights, [std](std::uint32_t word) { return std * normal_quantile((word + 0.5) / 4294967296.0); });
}

}  // namespace lockstep
