// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Can one host connect to another? One side waits on a port, the other one tries.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// What a line of try_to_reach begins with: the host and why not follow.
inline constexpr const char* kNotReached = "not reached: ";

/// Prints the number of a free port, and accepts connections there for so many seconds.
void answer_on_a_port(int seconds);

/// "not reached: node2 (Connection timed out)" for each that was not, a line each.
/// @param targets  "HOST:PORT"
std::string try_to_reach(const std::vector<std::string>& targets);

}  // namespace lockstep
