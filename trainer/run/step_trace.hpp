// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The steps of run.trace: what all ranks did in them, on one clock, in a file that ui.perfetto.dev shows.
#pragma once

#include "comm/communicator.hpp"
#include "common/timeline.hpp"
#include "trainer/config/job.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kTraceFile = "trace.pftrace";

// One clock for all ranks.

/// How far this rank's clock was ahead of rank 0's.
struct ClockReading {
  std::int64_t at_ns = 0;  ///< by this rank's clock
  std::int64_t ahead_ns = 0;
};

/// Names that identify the machine of each rank: processes of one machine share its steady clock. Collective.
std::vector<std::string> machines_of(Communicator& comm);

/// Asks rank 0 for the time, several times, and believes the answer that took the shortest. Collective.
/// @param machines  of all ranks
/// @param now       this rank's clock
ClockReading compare_clocks(Communicator& comm, const std::vector<std::string>& machines,
                            const std::function<std::int64_t()>& now = clock_ns);

/// This rank's clock and rank 0's, which may run at slightly different speeds.
struct ClockLine {
  ClockReading begin = {}, end = {};

  /// By rank 0's clock.
  std::int64_t of_rank_0(std::int64_t ns) const;
};

// The file: packets of Perfetto's format, those of one rank after those of another.

/// The slices of a track by begin, the outer ones first.
std::vector<TimeSlice> slices_of(const Timeline& timeline, std::size_t track);

/// Packets of a rank: a process with a track for each thread, and for each activity beside the threads.
/// Slices that overlap on one track are cut where the outer one ends.
std::string trace_packets(const Timeline& timeline, int rank, const std::string& host,
                          const ClockLine& clock);

/// Result of a trace, on rank 0.
struct WrittenTrace {
  std::int64_t slices = 0, lost = 0;
  std::string error = {};  ///< why there is no file; empty: there is one
};
/// Rank 0 writes the packets of all ranks, which send them one after the other. A file that cannot be written is no
/// error of the run. Collective. @param replace  a file that is there
WrittenTrace write_trace(Communicator& comm, const Timeline& timeline, const ClockLine& clock,
                         const std::string& path, bool replace);

// The window of a run.

/// @param steps  of the whole run
/// @throws ConfigError  the run ends before the first step that run.trace names
void require_traced_steps(const Job& job, std::int64_t steps);

class StepTrace {
 public:
  /// Gives the rank a timeline, if the job traces steps. On the rank's main thread, before a strategy is made.
  StepTrace(const Job& job, Communicator& comm);

  /// Largest part of `count` steps after `taken` that is all inside the window, or all outside.
  std::int64_t series_from(std::int64_t taken, std::int64_t count) const;
  /// The next step begins: opens the window, or writes it. Collective.
  /// @param directory  of the run, on rank 0
  /// @returns what rank 0 says of it; may be empty
  std::string before_step(std::int64_t step, const std::string& directory);
  /// No step follows in this start of the run. Likewise. A step that was begun and not taken has slices, too.
  std::string end(std::int64_t steps_taken, const std::string& directory);

 private:
  std::string write(std::int64_t last_step, const std::string& directory);

  TracedSteps steps_;
  Communicator& comm_;
  Timeline* timeline_;  ///< null: nothing is traced
  ClockLine clock_;
  std::int64_t first_ = 0;  ///< step of the window, if it is open
};

}  // namespace lockstep
