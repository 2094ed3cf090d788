// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One start of the job in a run directory, and what it said.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/chaos/moment.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::chaos {

/// Directories of one life; removed by the object that made them.
struct LifeDirectories {
  std::string home;           ///< parent of run() and temporary()
  std::string shared_memory;  ///< for Open MPI's segments
  std::string run() const { return home + "/run"; }
  std::string temporary() const { return home + "/tmp"; }
};

class Attempt {
 public:
  /// Starts training; `before` is remembered for the checks that follow.
  Attempt(const ChaosJob& job, const Placement& placement, const LifeDirectories& directories);

  ChildProcess& process() { return process_; }
  const ChaosJob& job() const { return job_; }
  const Placement& placement() const { return placement_; }
  const std::string& run_dir() const { return run_dir_; }
  const RunFacts& before() const { return before_; }

  /// Process ids of the ranks, or of the only process; empty while there is none.
  std::vector<pid_t> ranks() const { return process_.members(rank_name_); }
  /// Text of rank 0 until now on standard output or standard error.
  std::string out() const { return testing::read_text(out_path_); }
  std::string err() const { return testing::read_text(err_path_); }
  std::string last_line() const { return testing::Outcome{0, out(), ""}.last_line(); }
  /// Lines that rank 0 has added to its log since the start.
  std::string log() const;
  /// The step in a line of output, or of the log, like "going on from step 120 in ...". Nothing if it was not
  /// said. (An mpirun that was told to end no longer hands on what its ranks print.)
  std::optional<std::int64_t> step_after(const std::string& words) const;

  /// Waits for the end, of the launcher and of all it started, and returns the exit code.
  /// @throws Violation if something is alive and has got no further in two minutes
  int wait();
  /// As wait(), after a blow. Open MPI's mpirun can then hang in its own end, after all ranks are gone (a
  /// deadlock in PMIx_server_finalize, seen in 4.1.4 when a rank dies while it connects): it is killed.
  int wait_after_blow();
  bool launcher_hung() const { return launcher_hung_; }

 private:
  void wait_for_slurm() const;

  const ChaosJob& job_;
  Placement placement_;
  std::string run_dir_, out_path_, err_path_, rank_name_;
  RunFacts before_;
  std::size_t log_before_;  ///< bytes of the log
  ChildProcess process_;
  bool launcher_hung_ = false;
};

/// One rank, from start to end. Returns the last line of output. @throws Violation if it fails
std::string train_undisturbed(const ChaosJob& job, const LifeDirectories& directories);

// Error that a chaos test throws when the program broke a promise.

/// Names the promise and what was seen instead.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep::chaos
