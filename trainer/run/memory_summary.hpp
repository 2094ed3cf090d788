// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much memory a run took.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// "memory: at most 61 MiB resident, on rank 1; 115 MiB on all 2 ranks". Ranks that are threads share a process and its
/// memory. On a device also a line of its memory: what is allocated, what was at most, and what is no longer free,
/// as DeviceMemoryUse has it. Collective.
std::vector<std::string> memory_summary(Communicator& comm, const DeviceChoice& device);

}  // namespace lockstep
