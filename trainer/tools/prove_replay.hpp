// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Steps of a run computed again, and compared with its trail.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "common/terminal.hpp"
#include "trainer/checkpoint/trail_file.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/tools/prove_claims.hpp"
#include "trainer/tools/prove_result.hpp"
#include "trainer/tools/prove_steps.hpp"

#include <cstdint>
#include <string>

namespace lockstep {

// What a person at a terminal sees while steps are replayed, and how often the ranks hear of each other.

/// A bar on the terminal that standard output is; in a file or pipe, which only gets the verdict, nothing.
class ProofProgress {
 public:
  /// @param speaks  this is rank 0, and people are spoken to; otherwise every call does nothing
  /// @param what    "proving"
  /// @param steps   that are to be replayed
  ProofProgress(bool speaks, std::string what, std::int64_t steps);
  ~ProofProgress();
  ProofProgress(const ProofProgress&) = delete;
  ProofProgress& operator=(const ProofProgress&) = delete;

  /// So many more are done; draws when enough time has passed.
  void add(std::int64_t steps);
  /// So many are not replayed after all.
  void leave_out(std::int64_t steps);

 private:
  OutputTerminal output_;  ///< redraws: there is a bar
  std::string what_;
  std::int64_t done_ = 0, steps_;
  Clock::time_point start_, last_;
};

/// Groups of ranks replay for different times. Every few seconds all ranks meet, so no wait for another rank's work is
/// longer than the usual deadline, and a rank that is stopped or hangs is found by it.
class ProofMeetings {
 public:
  /// @param comm  of all ranks; borrowed
  explicit ProofMeetings(Communicator& comm);
  /// Whether this rank has gone on for long enough. The ranks of a group go by one of them.
  bool are_due() const;
  /// Collective over all ranks: this one is still replaying.
  void meet();
  /// Returns when all ranks have come here. Collective.
  void wait_for_all();

 private:
  bool someone_works(bool self);

  Communicator& comm_;
  Clock::time_point last_;
};

/// Of the run that is proved, on every rank that replays it.
struct ReplayedRun {
  const Job& job;  ///< as it is computed here
  const JobSetup& setup;
  const Trail& trail;
  const MetricsClaims& metrics;
  std::vector<std::size_t> bucket_sizes;  ///< the run's
};

/// Replays an interval on all ranks of `comm`, to its end or to the first step that differs. What is claimed of its
/// steps (lines of metrics.jsonl, the manifest at its end) is compared, too. Collective.
/// @param progress  is told of every step
/// @param meetings  of all ranks of the proof
/// @returns on rank 0, what was found out; `asked` stays empty
/// @throws AgreedError  a checkpoint cannot be read; the data are others than it was trained on
ProofResult replay(const ReplayedRun& run, const Interval& interval, Communicator& comm,
                   ProofProgress& progress, ProofMeetings& meetings);

}  // namespace lockstep
