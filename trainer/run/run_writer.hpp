// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The open files of a run, in the hands of rank 0: metrics.jsonl, trail, log, checkpoints.
#pragma once

#include "common/digest.hpp"
#include "common/env.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/checkpoint/run_status.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/event_file.hpp"
#include "trainer/run/run_events.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

/// Appends events to a file. A line is in it whole or not at all: what a full disk cut short is taken back,
/// kept in memory, and written before the next line.
class MetricsWriter {
 public:
  /// Opens for appending after the lines that are there. @throws IoError
  MetricsWriter(Env& env, const std::string& path);

  /// @throws IoError if the line is not in the file yet
  void write(const nlohmann::ordered_json& event);
  /// Returns when all lines will survive a power loss. May run on another thread than write.
  /// @throws IoError also if a line is not in the file yet
  void sync() { file_.sync(); }
  /// True if every line is in the file.
  bool is_complete() const { return file_.is_complete(); }
  std::int64_t lines() const { return lines_; }
  /// Position for a checkpoint: all lines so far. They are in the file once sync() has returned.
  CheckpointPosition position() const { return {lines_, hex(hash_.so_far())}; }

 private:
  std::int64_t lines_ = 0;
  Sha256 hash_;  ///< digests the bytes of those lines
  AppendFile file_;
};

/// The checkpoints that stay, as the job says.
KeepPolicy keep_policy(const Job& job);

/// Made by RunDirectory::open(). Holds the run's lock for as long as it lives.
class RunWriter final : public RunListener {
 public:
  /// For a run that is at `step`. Borrows env and job. @throws IoError
  /// @param after_first_save  runs when the run's first checkpoint is on disk; after the next one where it throws
  RunWriter(Env& env, const Job& job, std::unique_ptr<RunLock> lock, std::int64_t step,
            std::function<void()> after_first_save = {});

  /// Goes on with the run's trail, or begins it, and with ranks.jsonl beside it. If the job keeps none, cuts off what an
  /// earlier start left of later steps.
  /// @param ranks     who computes from now on
  /// @param expected  the position that the checkpoint recorded, if any
  void open_trail(TrailHead head, const RankStretch& ranks,
                  const std::optional<CheckpointPosition>& expected);
  /// Appends to trail.bin and ranks.jsonl. Errors as write().
  void write_trail(std::span<const TrailRecord> records, std::span<const RankSums> of_ranks);

  /// Appends to metrics.jsonl, and to the event file for TensorBoard if the job asks for one.
  /// @throws IoError, unless run.on_save_error is continue: then it is a warning, and the lines are kept for later
  void write(const nlohmann::ordered_json& event);
  /// True until an event is written: the run is new, or goes on from a checkpoint of another.
  bool has_no_events() const { return metrics_.lines() == 0; }
  /// Says in status.json how this start stands. A file that cannot be written is a warning.
  void note(const RunStatusNote& status);
  /// Appends to log/rank-0.log, with the time.
  void log(const std::string& line);

  void loss_is_due(const RunState& state, double learning_rate) override {
    write(loss_event(state, *state.unprinted, learning_rate));
  }
  void step_is_due(const LoggedStep& step) override { write(step_event(step)); }
  void evaluated(const RunState& state, const Evaluations& found) override {
    write(evaluation_event(state, found));
  }
  void epoch_finished(const FinishedEpoch& epoch) override { write(epoch_event(epoch)); }
  /// Returns when the file will survive a power loss. @throws IoError if it will not
  void run_finished(const FinishedRun& run) override;

  /// True if a checkpoint of this accuracy is better than all of its test set that there are.
  bool would_be_best(const JudgedAccuracy& now) const {
    return now.value && (!best_.value || now.test_samples != best_.test_samples || *now.value > *best_.value);
  }

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
  void sync_before_save();
  void remove_page_of_earlier_end();
  /// Stamps it. TensorBoard hears of it, too.
  nlohmann::ordered_json line_of(nlohmann::ordered_json event);
  void append(auto& file, const auto& what);

  Env& env_;
  const Job& job_;
  const std::string& path_;
  std::unique_ptr<RunLock> lock_;
  MetricsWriter metrics_;
  AppendFile log_;
  std::optional<TensorBoard> board_;
  std::unique_ptr<TrailFile> trail_;  ///< null: none is kept
  std::unique_ptr<RankFile> ranks_;   ///< null: none is kept
  bool log_failed_ = false;
  JudgedAccuracy best_;                     ///< highest of the checkpoints there are
  std::function<void()> after_first_save_;  ///< empty once it has succeeded
  AsyncCheckpointer checkpointer_;
};

}  // namespace lockstep
