// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The addition of an all-reduce: integers wrap around instead of overflowing, as they do in hardware and in
/// MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// Accumulates: sum[i] += term[i]. Same sizes.
inline void sum_into(std::span<std::int64_t> sum, std::span<const std::int64_t> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[i]) + static_cast<std::uint64_t>(term[i]));
  }
}

/// Accumulates: sum[i] += term[i]. Same sizes.
inline void sum_into(std::span<float> sum, std::span<const float> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

}  // namespace lockstep
