// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// When a run is saved, and how its ranks wait until that is on disk.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/checkpoint/trail_format.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace lockstep {

/// Every rank has one, and all make the same calls; only rank 0's, which has a run directory, writes.
class RunSaver {
 public:
  /// Borrows all four.
  RunSaver(const Job& job, const JobSetup& setup, Communicator& comm, ParallelStrategy& strategy)
      : job_(job), setup_(setup), comm_(comm), strategy_(strategy) {}
  /// Borrows it.
  void write_to(RunDirectory& directory) { directory_ = &directory; }
  /// Calls `prepare` on all ranks before each save.
  void call_before_each(std::function<void()> prepare) { prepare_ = std::move(prepare); }

  /// This state is in a checkpoint already: the one that the run goes on from.
  void is_saved(const RunState& state);
  /// Whether the checkpoint of this state would be the best one, which run.keep.best wants to have. The weights that
  /// are best are those that were evaluated: they are saved at once, or they are gone. Rank 0's word. Collective.
  bool is_best(const RunState& state) const;
  /// Brings the state to rank 0 and looks at its weights: to be called before they are evaluated. Collective.
  /// @throws AgreedError  70, names tensors and step
  void require_finite_weights(const RunState& state);
  /// Starts saving in the background, unless this state is saved, or being saved. Collective.
  /// @throws IoError      of an earlier save
  /// @throws AgreedError  as require_finite_weights()
  void save(const RunState& state);
  /// Returns when the last save is safely on disk. Collective.
  /// @param what_ends  "stopped on request", for the message
  /// @throws AgreedError if it is not: then this is no end of a run
  void wait_until_saved(const char* what_ends);

 private:
  void wait_for_disk();

  const Job& job_;
  const JobSetup& setup_;
  Communicator& comm_;
  ParallelStrategy& strategy_;
  RunDirectory* directory_ = nullptr;
  std::function<void()> prepare_;
  std::int64_t finite_step_ = -1;  ///< the last one whose weights were looked at
  std::int64_t saved_step_ = -1;   ///< of the checkpoint that is saved, or being saved
  bool saved_evaluated_ = false;   ///< and whether it holds the evaluation of that step
};

// From the fingerprints of steps to the records of a run's trail.

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
