// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank of a pipeline holds of a network's arena: the parameters of its stages, one stage behind the other.
#pragma once

#include "comm/bucket_plan.hpp"
#include "models/network.hpp"
#include "trainer/engine/step_fingerprints.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"

#include <cstddef>
#include <vector>

namespace lockstep {

/// A range of the network's arena, and where it lies in the rank's own.
struct HeldRange {
  int stage = 0;
  std::size_t global = 0, local = 0, size = 0;  ///< elements
  std::size_t first_tensor = 0;                 ///< in the rank's layout
};

struct HeldLayout {
  std::vector<HeldRange> ranges;     ///< of its stages that have parameters
  ParameterLayout layout;            ///< one behind the other
  std::vector<std::size_t> tensors;  ///< of each tensor held, its number in the network

  /// Null: the stage has no parameters.
  const HeldRange* range_of(int stage) const;
  std::vector<std::size_t> tensor_sizes() const;
  /// A bucket for each range. Later stages are complete first.
  BucketPlan buckets() const;
};
HeldLayout held_layout(const Network& network, const StagePlan& plan, int rank);

/// Of each tensor held.
std::vector<HeldTensor> places_in_network(const HeldLayout& held, const ParameterLayout& network);

}  // namespace lockstep
