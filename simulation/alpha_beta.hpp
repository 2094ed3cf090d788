// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The alpha-beta model: what an all-reduce takes if each message takes a latency and then its bytes over a
/// bandwidth. The arithmetic against which simulations and measurements are held.
#pragma once

#include "comm/bucket_plan.hpp"
#include "simulation/cluster.hpp"
#include "simulation/reduce_rounds.hpp"

#include <cstddef>
#include <vector>

namespace lockstep {

/// Seconds from when all ranks begin until the last one is done. A round takes alpha + bytes * beta + what is
/// added, and begins when both partners are there. Ranks of a node that send to other nodes in the same round
/// share its link; nothing else is in anybody's way.
double all_reduce_seconds(ReduceKind kind, const Cluster& cluster, std::size_t count,
                          std::size_t bytes_per_element);

/// The same for the sizes that measure_latency() measures: what `bucket_bytes: auto` plans with.
std::vector<LatencyPoint> latency_of_model(ReduceKind kind, const Cluster& cluster, std::size_t max_bytes,
                                           std::size_t bytes_per_element);

}  // namespace lockstep
