// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two loops, in a separate source, since a simulation has the time that they need in their place.
#include "comm/communicator.hpp"

namespace lockstep {

void add_up(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::span<std::int64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(a[i]) + static_cast<std::uint64_t>(b[i]));
  }
}

void add_up(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
}

}  // namespace lockstep
