// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// In which order backward finishes the gradients, and how much work lies between: what bucket planning needs
/// to know.
#pragma once

#include "models/network.hpp"

#include <cstddef>
#include <vector>

namespace lockstep {

/// The weight and bias of one layer, as Execution::backward reports them.
struct BackwardRange {
  std::size_t offset = 0;  ///< in the arena, in elements
  std::size_t size = 0;    ///< in elements
  /// Work of backward, per sample, from this range's completion to the next one's: the data gradient of this
  /// layer and the weight gradient of the next; 0 for the last range. Convolutions and linear layers only.
  double flops = 0;
  friend bool operator==(const BackwardRange&, const BackwardRange&) = default;
};

/// In backward order; together they cover the arena.
std::vector<BackwardRange> backward_ranges(const Network& network);

}  // namespace lockstep
