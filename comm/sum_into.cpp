// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two loops. A source of their own, since a simulation has the time that they take in their place.
#include "comm/communicator.hpp"

#include <cstddef>

namespace lockstep {

void sum_into(std::span<std::int64_t> sum, std::span<const std::int64_t> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[i]) + static_cast<std::uint64_t>(term[i]));
  }
}

void sum_into(std::span<float> sum, std::span<const float> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

}  // namespace lockstep
