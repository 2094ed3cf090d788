// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A row of the table: a number of ranks, a way to all-reduce and a number of buckets, by the model and by
/// simulation.
#pragma once

#include "comm/reduce/bucket_plan.hpp"
#include "tests/scaling/step_plan.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Scenario {
  Cluster cluster;
  ReduceKind kind = ReduceKind::kTrainer;
  std::size_t buckets_asked = 0;  ///< 0: auto
  BucketPlan plan;                ///< with what the model says is exposed
  double computing = 0;           ///< seconds of a step on one rank alone
  SimulatedStep simulated;

  double model_total() const { return computing + plan.exposed_seconds; }
  /// Share of the time in which the ranks compute.
  double efficiency() const { return computing / simulated.total; }
  /// The model's step over the simulated one, less 1.
  double deviation() const { return model_total() / simulated.total - 1; }
};

/// Plans the buckets with the model's latencies, as training does with measured ones.
Scenario plan_scenario(const Cluster& cluster, ReduceKind kind, std::size_t buckets,
                       const StepProfile& profile);

/// Runs `program` (lockstep_simulated_step) on it. @throws InternalError, IoError
SimulatedStep simulate(const Scenario& scenario, const StepProfile& profile, const std::string& program);

// Scenarios as lines for people and as a picture.

/// A head and a line for each, at most 79 columns; then how far the model is off.
std::vector<std::string> scaling_table(std::span<const Scenario> scenarios);

/// Efficiency and exposed communication against ranks: a line for each way to all-reduce and number of
/// buckets, dashed what the model says. Equal scenarios have equal bytes.
std::string scaling_svg(std::span<const Scenario> scenarios, const std::string& title);

}  // namespace lockstep
