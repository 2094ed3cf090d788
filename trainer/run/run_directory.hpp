// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The directory of a run before it goes on, in the hands of rank 0; and which one that is.
#pragma once

#include "comm/communicator.hpp"
#include "common/env.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/run_writer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Holds the run's lock, and gives it to the files that open() opens.
class RunDirectory {
 public:
  /// Creates the directory and takes its lock; nothing else is written. Borrows env and job.
  /// @param wait  a few seconds, for a lock that another job is about to give back
  /// @throws ConfigError  it holds files of others, and no run
  /// @throws IoError: cannot be written; RunInUseError: another job is using it
  explicit RunDirectory(Env& env, const Job& job, bool wait = true);

  /// Checkpoint from which the run goes on, as run.resume says; nothing: it starts from the beginning.
  /// Damaged checkpoints are named on standard error and passed over.
  /// @throws ConfigError  the run was made by a job that differs in what determines the weights; lists the
  /// keys
  std::optional<FoundCheckpoint> resume_point();
  /// True if that is the checkpoint of another run.
  bool goes_on_from_another() const { return is_from_another_; }

  /// Makes the directory agree with a run that is at `step`. It cuts metrics.jsonl back, writes job.yaml, and moves what
  /// is later aside: damaged checkpoints to step-N.damaged, others (run.resume named an earlier one) to previous-N. At
  /// step 0, what an earlier run left here is moved to previous-N and said so on standard error, unless it is this very
  /// run, interrupted before it had saved anything. So is a run of another job where run.resume names a checkpoint
  /// that lies elsewhere. run.resume in job.yaml is auto, so that it goes on with the run, or the checkpoint of another
  /// run until this one has saved.
  /// @param evaluated  the step was evaluated, if it is one after which the run is
  /// @param facts      of the checkpoint gone on from: lines that are lost of metrics.jsonl are told, on standard error
  ///                   and by an event "lost"
  std::unique_ptr<RunWriter> open(std::int64_t step, bool evaluated, const CheckpointFacts& facts) &&;

 private:
  Env& env_;
  const Job& job_;
  const std::string& path_;
  std::unique_ptr<RunLock> lock_;
  std::vector<std::string> damaged_;  ///< paths of checkpoints that resume_point passed over
  bool is_from_another_ = false;
  bool holds_another_job_ = false;  ///< the run that lies here is of a job that trains other weights
};

// Files that a start reads besides its data.

/// Checkpoint that run.resume names.
/// @throws MissingDataError  there is none; ConfigError  it is an average of weights; as open_checkpoint()
FoundCheckpoint named_resume_point(Env& env, const Job& job);

/// Why train.initial_weights cannot be read; "": it is there, or none are asked for.
std::string why_no_initial_weights(const Job& job);

// Choice of a directory for a run whose job names none (run.dir: auto): runs/JOB, runs/JOB-2, and so on.

/// Value of run.dir if the program chooses.
inline constexpr const char* kChosenDirectory = "auto";

/// First line of a run's job.yaml: "# job 'mnist-99'". It tells runs/mnist-99 from the 99th run of the job
/// mnist.
std::string first_line_of_job(const Job& job);
/// That of a run's job.yaml; "": it has none, as those of version 0.1.0 before it was written.
std::string first_line_of_job(Env& env, const std::string& run_dir);

/// The keys that determine weights and that a run's job.yaml has otherwise than this job, with both values.
/// @throws MissingDataError, IoError, ConfigError  it cannot be read
std::vector<std::string> differences_from_run(Env& env, const std::string& run_dir, const Job& job);

/// Opens a run directory for the job, in place of the one that was opened before. It takes the lock, and
/// checks that the job can go on from what is in it.
/// @param wait  for a lock that may be free in a moment
/// @throws RunInUseError; ConfigError, DataError  it cannot; any other error ends the search
using OpenRunDirectory = std::function<void(const std::string& path, bool wait)>;

/// Chooses and opens a directory: under run.resume: auto, the newest unfinished, unlocked run of this job.
/// Such a run computes the same. Otherwise a new directory. For rank 0 alone: what is open is locked, so that
/// two starts at once never take the same one.
/// @returns a line for people: which, and why
std::string choose_run_directory(Env& env, const Job& job, const OpenRunDirectory& open);

/// True if a run has ended and the page that its job asks for is missing: it was killed before.
bool lacks_page(Env& env, const std::string& run_dir, const Job& job);

/// Collective. On every rank that is a process: writes the run directory, and a line feed, to the file that
/// $LOCKSTEP_RUN_FILE names, if it names one. For programs that start ranks and want to read the run (launch/python).
/// @param run_directory  on rank 0
/// @returns it, on all ranks
/// @throws UsageError  there is something that must not be replaced; IoError  it cannot be written
std::string tell_run_directory(Communicator& comm, const std::string& run_directory);

// Verdicts on lost ranks: log/verdict.txt of the last start, log/verdict-1.txt and so on of earlier ones.

inline constexpr const char* kVerdictFile = "log/verdict.txt";

/// Collective: a verdict on this start is written there; that of an earlier start gets a number.
/// @param run_directory  on rank 0
void open_verdict(Communicator& comm, const std::string& run_directory);

/// The paths of all verdicts, the earliest first.
std::vector<std::string> verdict_files(Env& env, const std::string& run_directory);

}  // namespace lockstep
