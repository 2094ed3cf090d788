// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a launcher says when it cannot start ranks, or lost one, in plain words: mpirun's pages are long, and the
/// cause stands in one line of them.
#pragma once

#include "trainer/doctor/checks.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct LogFinding : Finding {
  std::string id;  ///< "not-enough-slots"
};

/// Everything that is recognised in the output of mpirun, mpiexec, srun and ranks, each once.
std::vector<LogFinding> read_launch_log(std::string_view text);

}  // namespace lockstep
