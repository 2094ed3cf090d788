// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The files of a run, in the hands of rank 0: lock, job.yaml, metrics.jsonl, log, checkpoints.
#pragma once

#include "comm/communicator.hpp"
#include "common/env.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/checkpoint/run_status.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/event_file.hpp"
#include "trainer/run/metrics.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Holds the run's lock for as long as it lives. Calls in this order: resume_point, open, then the rest.
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

  /// Makes the directory agree with a run that is at `step`. It cuts metrics.jsonl back, writes job.yaml, and
  /// moves what is later aside: damaged checkpoints to step-N.damaged, others (run.resume named an earlier
  /// one) to previous-N. At step 0, what an earlier run left here is moved to previous-N, unless it is this
  /// very run, interrupted before it had saved anything.
  /// @param evaluated  the step was evaluated, if it is one after which the run is
  /// @param facts      of the checkpoint gone on from: lines that are lost of metrics.jsonl are told, on standard error
  ///                   and by an event "lost"
  void open(std::int64_t step, bool evaluated, const CheckpointFacts& facts);

  /// Goes on with the run's trail after `step`, or begins it, and with ranks.jsonl beside it. If the job
  /// keeps none, cuts off what an earlier start left of later steps. `expected` is the position that the
  /// checkpoint recorded, if any. After open().
  /// @param ranks  who computes from now on
  void open_trail(TrailHead head, const RankStretch& ranks, const std::optional<CheckpointTrail>& expected);
  /// Begins an event file for TensorBoard, if the job asks for it; the run goes on after `step`. From then on
  /// it gets what write() gets. A file that cannot be written is a warning. After open().
  void open_tensorboard(std::int64_t step);
  /// Appends to trail.bin and ranks.jsonl. Errors as write().
  void write_trail(std::span<const TrailRecord> records, std::span<const RankSums> of_ranks);

  /// Appends to metrics.jsonl. @throws IoError, unless run.on_save_error is continue: then it is a warning,
  /// and the lines are kept for later
  void write(const nlohmann::ordered_json& event);
  /// As write(), and returns when the file will survive a power loss. @throws IoError if it will not
  void write_durably(const nlohmann::ordered_json& event);
  /// Says in status.json how this start stands, once open() was called. A file that cannot be written is a warning.
  void note(const RunStatusNote& status);
  /// Appends to log/rank-0.log, with the time.
  void log(const std::string& line);

  /// True if a checkpoint of this accuracy is better than all that there are.
  bool would_be_best(double accuracy) const { return accuracy > best_accuracy_; }

  /// Starts saving in the background; waits for an earlier save that is still under way.
  /// @throws IoError of an earlier save, unless run.on_save_error is continue: then it is a warning
  void save(CheckpointState state);
  /// Waits for the save under way, but not for ever. True if there is none any more.
  bool finished_within(std::chrono::milliseconds limit) { return checkpointer_.finished_within(limit); }
  /// Waits until the last save is safely on disk, under the run's name. @throws IoError if it is not, whatever
  /// run.on_save_error says
  void finish();
  /// Numbers of a rank were wrong. Writes down which checkpoints are in doubt, if any are, the save under way included.
  /// @returns how the run may go on, as a sentence
  std::string note_doubt(const CheckpointDoubt& doubt);

 private:
  void clear_for_a_new_run();
  std::string make_previous();
  void move_previous_run_aside();
  void move_later_checkpoints_aside(std::int64_t step);
  void keep_damaged_aside();
  void sync_before_save();
  void to_tensorboard(const std::function<void(EventFile&)>& write);
  void give_up_tensorboard(const Error& error);
  void append(auto& file, const auto& what);

  Env& env_;
  const Job& job_;
  const std::string& path_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<TrailFile> trail_;  ///< null: none is kept
  std::unique_ptr<RankFile> ranks_;   ///< likewise
  std::optional<EventFile> events_;   ///< none: run.tensorboard is off, or the file could not be written
  std::unique_ptr<AppendFile> log_;
  bool log_failed_ = false;
  double best_accuracy_ = -1;         ///< of the checkpoints there are; -1: none was evaluated
  std::vector<std::string> damaged_;  ///< paths of checkpoints that resume_point passed over
  AsyncCheckpointer checkpointer_;
};

// Choice of a directory for a run whose job names none (run.dir: auto): runs/JOB, runs/JOB-2, and so on.

/// Value of run.dir if the program chooses.
inline constexpr const char* kChosenDirectory = "auto";

/// First line of a run's job.yaml: "# job 'mnist-99'". It tells runs/mnist-99 from the 99th run of the job
/// mnist.
std::string first_line_of_job(const Job& job);
/// That of a run's job.yaml; "": it has none, as those of version 0.1.0 before it was written.
std::string first_line_of_job(Env& env, const std::string& run_dir);

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

/// Reason why the job does not go on in this directory, as far as reading shows: "is finished". Nothing: it
/// may, also in one where no run has begun.
std::optional<std::string> why_not_go_on(Env& env, const std::string& run_dir, const Job& job);

/// Collective. On every rank that is a process: writes the run directory, and a line feed, to the file that
/// $LOCKSTEP_RUN_FILE names, if it names one. For programs that start ranks and want to read the run (launch/python).
/// @param run_directory  on rank 0
/// @throws UsageError  there is something that must not be replaced; IoError  it cannot be written
void tell_run_directory(Communicator& comm, const std::string& run_directory);

// Verdicts on lost ranks: log/verdict.txt of the last start, log/verdict-1.txt and so on of earlier ones.

inline constexpr const char* kVerdictFile = "log/verdict.txt";

/// Collective: a verdict on this start is written there; that of an earlier start gets a number.
/// @param run_directory  on rank 0
void open_verdict(Communicator& comm, const std::string& run_directory);

/// The paths of all verdicts, the earliest first.
std::vector<std::string> verdict_files(Env& env, const std::string& run_directory);

}  // namespace lockstep
