// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole test: the undisturbed run, then lives side by side until enough blows have fallen, then the tally.
#pragma once

#include "tests/chaos/disturbance.hpp"

#include <cstdint>
#include <string>

namespace lockstep::chaos {

struct Options {
  std::string program;         ///< path of lockstep
  std::int64_t rounds = 60;    ///< blows in all
  std::int64_t forgeries = 0;  ///< of chaos prove
  std::uint64_t seed = 1;
  std::int64_t only_life = 0;  ///< this one alone; 0: as many as the rounds need
  int jobs = 3;                ///< lives at the same time
  bool verbose = false;        ///< tells of every start
  bool slurm = false;          ///< some runs under a Slurm that is running here
};

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 after a violation.
int run_campaign(const Options& options, const std::string& name, const Disturbance& disturbance);

}  // namespace lockstep::chaos
