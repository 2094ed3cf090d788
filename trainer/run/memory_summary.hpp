// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much memory a run took.
#pragma once

#include "comm/communicator.hpp"

#include <string>

namespace lockstep {

/// "memory: at most 61 MiB resident, on rank 1; 115 MiB on all 2 ranks". Ranks that are threads share a process and its
/// memory. Collective.
std::string memory_summary(Communicator& comm);

}  // namespace lockstep
