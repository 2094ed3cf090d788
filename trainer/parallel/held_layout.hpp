// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The part of a network's arena that a rank of a pipeline holds. That is the parameters of its stages, one stage after
/// the other.
#pragma once

#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "models/arena.hpp"
#include "models/network.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/training/fingerprints.hpp"

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
  std::vector<HeldRange> ranges;  ///< for its stages that have parameters
  ParameterLayout layout;         ///< one after the other
  std::vector<HeldTensor> tensors;

  /// Null: the stage has no parameters.
  const HeldRange* range_of(int stage) const;
  /// The units of the tensors held become those of the whole network. @returns whether any changed
  bool take_units(const GradientUnits& whole, GradientUnits& own) const;
  /// A bucket for each range. Later stages are complete first.
  BucketPlan buckets() const;
};
HeldLayout held_layout(const Network& network, const StagePlan& plan, int rank);

}  // namespace lockstep
