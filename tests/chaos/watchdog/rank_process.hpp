// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which process is which rank.
#pragma once

#include <sys/types.h>

#include <vector>

namespace lockstep::chaos {

/// Of processes that Open MPI's mpirun has started: by rank; empty where not all of them are there.
std::vector<pid_t> processes_by_rank(const std::vector<pid_t>& processes, int ranks);

}  // namespace lockstep::chaos
