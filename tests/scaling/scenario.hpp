// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A row of the table. A number of ranks, a way to all-reduce and a number of buckets, by the model and by
/// simulation.
#pragma once

#include "comm/reduce/bucket_plan.hpp"
#include "tests/scaling/step_plan.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

struct Scenario {
  Cluster cluster;
  ReduceKind kind = ReduceKind::kTrainer;
  std::size_t buckets_asked = 0;  ///< 0: auto
  BucketPlan plan;                ///< with what the model says is exposed
  double computing = 0;           ///< seconds of a step on one rank alone
  double bound = 0;               ///< seconds: all_reduce_bound() of all gradients
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
/// @param spread  of the ranks' computing
SimulatedStep simulate(const Scenario& scenario, const StepProfile& profile, double spread,
                       const std::string& program);

// Scenarios as lines for people.

/// A head and a line for each, at most 79 columns. Then how far the model is off, and how many times the
/// bound of one all-reduce is exposed at most.
std::vector<std::string> scaling_table(std::span<const Scenario> scenarios);

// The alpha-beta model: what an all-reduce takes if each message takes a latency and then its bytes over a
// bandwidth. The arithmetic against which simulations and measurements are held.

/// Seconds from when all ranks begin until the last one is done. A round takes alpha + bytes * beta + what is
/// added, and begins when both partners are there. Ranks of a node that send to other nodes in the same round
/// share its link; nothing else is in their way.
double all_reduce_seconds(ReduceKind kind, const Cluster& cluster, std::size_t count,
                          std::size_t bytes_per_element);

/// Lower bound that no schedule misses by much: halves and back, inside the nodes and between them. Twice as
/// many messages as it takes to reach all, every byte twice through each rank's and each node's way but for
/// its own part, and each element added once.
double all_reduce_bound(const Cluster& cluster, std::size_t count, std::size_t bytes_per_element);

/// all_reduce_seconds() for the sizes that measure_latency() measures: what `bucket_bytes: auto` plans with.
std::vector<LatencyPoint> latency_of_model(ReduceKind kind, const Cluster& cluster, std::size_t max_bytes,
                                           std::size_t bytes_per_element);

// Measurements of `lockstep bench`, read from its output, and the constants that follow from it.

/// Row of `bench allreduce`: int64, in place.
struct MeasuredAllReduce {
  int ranks = 0;
  std::vector<LatencyPoint> points;  ///< ascending in bytes
};
/// @throws DataError  it is not what `lockstep bench allreduce` prints, or one rank's
MeasuredAllReduce read_allreduce_table(std::string_view text, const std::string& file);

/// Row of `bench step`: the line "world".
struct MeasuredStep {
  double flops_per_second = 0;     ///< a thread's, while it computes
  std::int64_t grains = 0;         ///< per rank and step
  std::vector<double> until_left;  ///< seconds of a step until each bucket leaves; empty: not told
};
/// @throws DataError  it is not what `lockstep bench step` prints on a CPU
MeasuredStep read_step_table(std::string_view text, const std::string& file);

/// Fits latency and bandwidth inside a node to the measurements there, in relative terms. Time for adding up
/// is that of `start`.
/// @param most_bytes  larger sums are left out: they do not fit the same caches
NetworkConstants fit_local(const MeasuredAllReduce& measured, const NetworkConstants& start,
                           std::size_t most_bytes);

}  // namespace lockstep
