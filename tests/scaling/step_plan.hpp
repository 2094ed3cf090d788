// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The machines that a simulation supposes: nodes of several ranks under a fat tree of two levels of switches.
#pragma once

#include "comm/mpi/mpi_all_reduce.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

/// Cost of a message: a latency, then its bytes over a bandwidth. Seconds, bytes a second.
struct NetworkConstants {
  double latency = 1.93e-6;       ///< a message between two nodes, both ends' software included
  double link_latency = 0.1e-6;   ///< more for each of the links on its way
  double bandwidth = 12.5e9;      ///< each link, in each direction; a node has one for all its ranks
  double local_latency = 0.5e-6;  ///< a message between two ranks of a node
  double local_bandwidth = 16e9;  ///< each pair of them
  double sum_bandwidth = 20e9;    ///< adding up, counted in bytes that arrived
};

struct Cluster {
  int ranks = 1;
  int ranks_per_node = 8;
  int nodes_per_leaf = 16;  ///< under one switch
  NetworkConstants network;

  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  int node_of(int rank) const { return rank / ranks_per_node; }
  /// Nodes under each switch of the lower level; there are as many switches above them.
  int leaf_size() const { return std::min(nodes_per_leaf, nodes()); }
  int leaves() const { return (nodes() + leaf_size() - 1) / leaf_size(); }
  int leaf_of(int rank) const { return node_of(rank) / leaf_size(); }
  /// Between two ranks; 0 within a node.
  int links_between(int a, int b) const {
    if (node_of(a) == node_of(b)) return 0;
    return leaf_of(a) == leaf_of(b) ? 2 : 4;
  }
};

// Input and output of a simulated step: JSON on standard input and output.

// The all-reduces that are simulated: the trainer's own, and others that it might have.

enum class ReduceKind {
  kTrainer,   ///< all_reduce_schedule(), what training over MPI does
  kFarFirst,  ///< kTrainer with its partners in the opposite order: halves go to the farthest rank first
  kLeaders,   ///< summed up inside each node, all-reduced by one rank of each, spread inside each node
};

inline constexpr std::string_view kReduceNames[] = {"trainer", "far-first", "leaders"};
std::string_view name_of(ReduceKind kind);
/// @throws UsageError  there is none of this name; says which there are
ReduceKind reduce_named(const std::string& name);

/// The rounds of one rank for a sum of `count` elements.
std::vector<Exchange> reduce_rounds(ReduceKind kind, const Cluster& cluster, int rank, std::size_t count,
                                    std::size_t bytes_per_element);

// Computation of a rank in a step, and the times of its gradients. They follow from the network's arithmetic
// at a given speed, as `bucket_bytes: auto` reckons it.

/// Computing without a look at messages; behind it, ranges that are done leave, and messages are polled.
struct Stretch {
  double seconds = 0;
  std::optional<std::size_t> done;  ///< the range that it completes, in backward order
};

struct StepProfile {
  std::vector<GradientRange> ranges;  ///< in backward order, of the last grain
  std::vector<Stretch> stretches;
  double computing() const;  ///< seconds of all stretches
};

/// @param grains  of this rank; only the last one's gradients can be on their way while it computes
StepProfile profile_step(const Network& network, int grain, int grains, double flops_per_second);

/// Stretches a profile to measured times: the time up to the completion of each range is stretched alike.
/// @param done  seconds from the step's start to the completion of each range; ascending, as many as there are ranges
StepProfile with_measured(StepProfile profile, std::span<const double> done);

/// A bucket's way out: when a range is done.
struct PlannedBucket {
  std::size_t elements = 0;    ///< int64 numbers; the last bucket's include the step's counters
  std::size_t last_range = 0;  ///< it leaves when this one is done
};

struct StepPlan {
  Cluster cluster;
  ReduceKind kind = ReduceKind::kTrainer;
  std::vector<Stretch> stretches;
  std::vector<PlannedBucket> buckets;  ///< in the order in which they leave
  double spread = 0;                   ///< standard deviation of the ranks' computing, as a share of it
};

/// Seconds a step, until the last rank is done.
struct SimulatedStep {
  double total = 0;
  double exposed = 0;  ///< part of it after the slowest rank has computed
};

std::string to_text(const StepPlan& plan);
/// @throws nlohmann::json::exception
StepPlan step_plan_from(const std::string& text);

}  // namespace lockstep
