// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints of steps of which several ranks hold copies.
#pragma once

#include "comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace lockstep {

/// A row's fingerprints have multipliers of their own, so their sum is the fingerprint of all of them.
inline std::uint64_t whole_fingerprint(std::span<const std::uint64_t> row) {
  return std::accumulate(row.begin(), row.end(), std::uint64_t{0});
}

/// The sum over all copies of their difference to the first one, of each step.
/// @param rows   [steps][slots] of the first copy
/// @param sums   [steps]: whole_fingerprint of all copies' rows, added up
inline std::vector<std::uint64_t> apart_from_first(std::span<const std::uint64_t> rows, std::size_t slots,
                                                   std::span<const std::int64_t> sums, int copies) {
  std::vector<std::uint64_t> apart;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t first = whole_fingerprint(rows.subspan(i * slots, slots));
    apart.push_back(static_cast<std::uint64_t>(sums[i]) - static_cast<std::uint64_t>(copies) * first);
  }
  return apart;
}

}  // namespace lockstep
