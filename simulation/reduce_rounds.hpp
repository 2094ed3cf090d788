// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The all-reduces that are simulated: the trainer's own, and others that it might have.
#pragma once

#include "comm/mpi/all_reduce_schedule.hpp"
#include "simulation/cluster.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class ReduceKind {
  kTrainer,   ///< all_reduce_schedule(), what training over MPI does
  kFarFirst,  ///< the same with its partners in the opposite order: halves go to the farthest rank first
  kLeaders,   ///< summed up inside each node, all-reduced by one rank of each, spread inside each node
};

inline constexpr std::string_view kReduceNames[] = {"trainer", "far-first", "leaders"};
std::string_view name_of(ReduceKind kind);
/// @throws UsageError  there is none of this name; says which there are
ReduceKind reduce_named(const std::string& name);

/// The rounds of one rank for a sum of `count` elements.
std::vector<Exchange> reduce_rounds(ReduceKind kind, const Cluster& cluster, int rank, std::size_t count,
                                    std::size_t bytes_per_element);

}  // namespace lockstep
