// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep prove`: was a run computed as it says?
#pragma once

#include "trainer/config/job.hpp"
#include "trainer/tools/prove_survey.hpp"

#include <string>

namespace lockstep {

struct ProveOptions {
  std::string run;   ///< its directory
  std::string data;  ///< where its data are here; empty: where they were, or where data.root: auto looks
  Question question;
  bool json = false;
  ParallelSection parallel;  ///< device, backend, ranks, threads
};

/// Replays steps of the run, on all ranks that were started, and prints what came out of it.
/// @returns ProofResult::exit_code()
/// @throws Error  what is wrong before the ranks are up
int prove(const ProveOptions& options);

}  // namespace lockstep
