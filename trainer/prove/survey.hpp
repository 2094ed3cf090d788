// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run directory holds of a proof: trail and checkpoints, what is wrong with them already, and what can be
/// replayed from where.
#pragma once

#include "common/files/env.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/arithmetic.hpp"
#include "trainer/prove/interval.hpp"
#include "trainer/prove/proof_result.hpp"
#include "trainer/trail/trail_reader.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

/// The trail of a run. @throws MissingDataError  it has none; DataError, ConfigError, IoError
Trail read_trail(Env& env, const std::string& run_dir);

struct Survey {
  std::vector<Interval> intervals;
  ProofResult verdict;      ///< what is found and what cannot be proved without any replay
  std::vector<std::size_t> bucket_sizes;  ///< of the newest good checkpoint; empty: there is none
};

struct Question {
  StepRange steps;          ///< as parse_steps reads them
  std::int64_t sample = 0;  ///< so many of them, at random; 0: all
  std::uint64_t seed = 0;   ///< of the sample
};

/// @param job         of RUN/job.yaml
/// @param arithmetic  of this machine
/// @param why_no_beginning  why step 1 cannot be replayed from the beginning; empty: it can
/// @throws UsageError  the run has no such steps; MissingDataError  it has none; IoError
Survey survey_run(Env& env, const Job& job, const Trail& trail, Arithmetic arithmetic,
                  const std::string& why_no_beginning, const Question& question);

}  // namespace lockstep
