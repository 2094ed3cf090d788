// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep prove`: was a run computed as it says?
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/tools/prove_claims.hpp"
#include "trainer/tools/prove_result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

// Material for a proof in a run directory: trail and checkpoints, their faults, and the intervals that can be
// replayed.

/// The trail's facts of one kind, "model." for instance, without what their names begin with.
std::map<std::string, std::string> facts_of(const TrailHead& head, const std::string& kind);
/// As the trail has it; 0: it does not say.
std::int64_t train_samples_of(const TrailHead& head);

/// The trail of the run in job.run.dir, and at most one record more than the job has steps.
/// @throws MissingDataError  it has none; DataError, ConfigError, IoError
Trail trail_of(Env& env, const Job& job);

/// Files of a run that say what was computed.
struct RunFiles {
  const Trail& trail;
  const MetricsClaims& metrics;
  /// Newest first; listed before the others were read, so that of a run under way these know as much.
  std::vector<CheckpointEntry> checkpoints;
};

struct Survey {
  std::vector<Interval> intervals;
  ProofResult verdict;                    ///< findings, and steps that cannot be proved, before any replay
  std::vector<std::size_t> bucket_sizes;  ///< the newest good checkpoint's; empty: there is none
};

struct ProofRequest {
  StepRange steps;  ///< as parse_steps reads them
  /// So many of them at random, the last one and that of the last checkpoint always among them; 0: all.
  std::int64_t sample = 0;
  std::uint64_t seed = 0;  ///< draws the sample
};

/// @param job         of RUN/job.yaml
/// @param arithmetic  of this machine
/// @param why_no_beginning  why step 1 cannot be replayed from the beginning; empty: it can
/// @throws UsageError  the run has no such steps; MissingDataError  it has none; IoError
Survey survey_run(const Job& job, const RunFiles& files, Arithmetic arithmetic,
                  const std::string& why_no_beginning, const ProofRequest& question);

struct ProveOptions {
  std::string run;   ///< its directory
  std::string data;  ///< data.root here; empty: where the data were, or where data.root: auto looks
  ProofRequest question;
  bool json = false;
  ParallelSection parallel;  ///< device, backend, ranks, threads
};

/// Replays steps of the run, on all ranks that were started, and prints what came out of it.
/// @returns ProofResult::exit_code()
/// @throws Error  what is wrong before the ranks are up
int prove(const ProveOptions& options);

}  // namespace lockstep
