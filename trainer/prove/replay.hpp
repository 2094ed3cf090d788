// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Steps of a run computed again, and compared with its trail.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/prove/claims.hpp"
#include "trainer/prove/interval.hpp"
#include "trainer/prove/proof_progress.hpp"
#include "trainer/prove/proof_result.hpp"
#include "trainer/trail/trail_reader.hpp"

#include <string>

namespace lockstep {

/// Of the run that is proved, on every rank that replays it.
struct ReplayedRun {
  const Job& job;  ///< as it is computed here
  const JobSetup& setup;
  const Trail& trail;
  const MetricsClaims& metrics;
  std::vector<std::size_t> bucket_sizes;  ///< the run's
};

/// Replays an interval on all ranks of `comm`, to its end or to the first step that differs. What is claimed of its steps
/// (lines of metrics.jsonl, the manifest at its end) is compared, too. Collective.
/// @param progress  is told of every step
/// @param meetings  of all ranks of the proof
/// @returns on rank 0, what was found out; `asked` stays empty
/// @throws AgreedError  a checkpoint cannot be read; the data are others than it was trained on
ProofResult replay(const ReplayedRun& run, const Interval& interval, Communicator& comm,
                   ProofProgress& progress, ProofMeetings& meetings);

}  // namespace lockstep
