// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One start of the job in a run directory, and what it said.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/chaos/moment.hpp"
#include "tests/chaos/record_damage.hpp"
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

// One run from its first start to its end, disturbed on the way as often as the dice say.

/// Settings that all lives of one test share.
struct World {
  const ChaosJob& job;
  Result reference;
  std::string reference_hash;  ///< the last line of the undisturbed run
  const Disturbance& disturbance;
  Tally& tally;
  Rounds& rounds;
  std::function<void(const std::string&)> tell;  ///< gets the story of every attempt; may be empty
};

inline constexpr const char* kRunsCompared = "finished and compared: all bytes equal";
inline constexpr const char* kResumes = "went on from a checkpoint";
inline constexpr const char* kOtherRanks = "on another number of ranks than before";

class RestartedRun {
 public:
  /// @param story  says what was going on last, for the message about a violation
  RestartedRun(World& world, const LifeDirectories& directories, const Dice& dice, std::string& story);

  /// Starts the job again and again until it is done, then compares it with the undisturbed run.
  /// @throws Violation at the first broken promise
  void run();

 private:
  bool attempt();
  Ending disturb(Attempt& attempt);
  Ending let_finish(Attempt& attempt);
  void check_after(const Attempt& attempt, Ending ending);
  void check_resume(const Attempt& attempt, const RunFacts& after);
  void verify_checkpoints();
  void compare_kept(const std::vector<std::string>& kept, std::vector<std::string>* differences);
  void compare(const Attempt& attempt);

  World& world_;
  const LifeDirectories& directories_;
  Dice dice_;
  std::string& story_;
  std::int64_t earlier_runs_ = 0;  ///< previous-N directories
  int last_ranks_ = 0;
  RecordDamage damage_;
};

// Error that a chaos test throws when the program broke a promise.

/// Names the promise and what was seen instead.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep::chaos
