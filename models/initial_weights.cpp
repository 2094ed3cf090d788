// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// InitialWeights.
#include "models/initial_weights.hpp"

#include "kernels/numerics/portable_math.hpp"
#include "kernels/numerics/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {

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
