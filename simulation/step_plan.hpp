// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is handed to a simulated step and what it hands back: JSON on standard input and output.
#pragma once

#include "simulation/cluster.hpp"
#include "simulation/reduce_rounds.hpp"
#include "simulation/step_profile.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// A bucket's way out: when a range is done.
struct PlannedBucket {
  std::size_t elements = 0;    ///< of int64; the last one's with the step's counters
  std::size_t last_range = 0;  ///< it leaves when this one is done
};

struct StepPlan {
  Cluster cluster;
  ReduceKind kind = ReduceKind::kTrainer;
  std::vector<Stretch> stretches;
  std::vector<PlannedBucket> buckets;  ///< in the order in which they leave
  int steps = 1;                       ///< one right behind the other
};

/// Seconds a step, of the slowest rank.
struct SimulatedStep {
  double total = 0;
  double exposed = 0;  ///< from the end of backward until all sums are there
};

std::string to_text(const StepPlan& plan);
/// @throws nlohmann::json::exception
StepPlan step_plan_from(const std::string& text);

}  // namespace lockstep
