// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The cluster as SimGrid has it.
#pragma once

#include "simulation/cluster.hpp"

#include <simgrid/s4u.hpp>

#include <vector>

namespace lockstep {

/// Makes the platform. @returns the nodes in order
std::vector<simgrid::s4u::Host*> make_fat_tree(const Cluster& cluster);

}  // namespace lockstep
