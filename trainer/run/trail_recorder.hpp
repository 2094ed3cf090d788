// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the fingerprints of steps to the records of a run's trail.
#pragma once

#include "trainer/config/job.hpp"
#include "trainer/engine/arithmetic.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/strategies/strategy.hpp"
#include "trainer/trail/trail_format.hpp"

#include <cstdint>
#include <vector>

namespace lockstep {

/// Of a run of `job` on what was set up for it.
TrailHead trail_head(const Job& job, const JobSetup& setup, const std::vector<std::string>& buffers);

/// Every rank has one, and all make the same calls; only rank 0's, which has a run directory, writes. Does nothing
/// where the job keeps no trail.
class TrailRecorder {
 public:
  /// Steps between two times when the ranks put together what each knows.
  static constexpr std::int64_t kMostUnwritten = 64;

  /// Borrows job, setup and strategy.
  TrailRecorder(const Job& job, const JobSetup& setup, ParallelStrategy& strategy);
  /// Borrows it.
  void write_to(RunDirectory& directory) { directory_ = &directory; }

  TrailHead head() const;
  /// @param steps  taken so far, those of the series included
  void add(const StepSeries& series, std::int64_t steps);
  /// Writes what was added. Collective.
  void flush();

 private:
  const Job& job_;
  const JobSetup& setup_;
  ParallelStrategy& strategy_;
  std::size_t slots_ = 0;  ///< of a step; 0: no trail is kept
  Arithmetic arithmetic_;
  RunDirectory* directory_ = nullptr;
  std::vector<std::uint64_t> rows_;  ///< of the steps up to steps_ that are not written
  std::int64_t steps_ = 0;
};

}  // namespace lockstep
