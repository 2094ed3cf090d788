// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A training run from start to end: epochs, evaluation, logs, checkpoints, stopping.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/run/metrics.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/verify/rank_checks.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Owns all that a run is made of. Every rank goes through the same steps; rank 0 alone, which has the run directory,
/// speaks and writes.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit);

  /// To the end, or until it is asked to stop. @returns the exit code of train()
  int run();
  /// After run() has returned 0, on rank 0: its directory; "" where there was nothing left to do.
  std::string finished_directory() const {
    return directory_ && (!nothing_left_ || lacks_page_) ? job_.run.dir : "";
  }

 private:
  // How it begins: train.cpp.
  void open_directory();
  void open_chosen(const std::string& path, bool wait);
  void restore_or_initialise();
  /// Places of all ranks, and the share of a batch that each has. Collective.
  RankStretch ranks_here();
  void open_files(const std::optional<FoundCheckpoint>& checkpoint, RankStretch ranks);
  bool nothing_left();
  void announce();

  // The loop: training_run.cpp.
  int run_to_the_end();
  std::int64_t steps_in_run() const { return steps_asked(job_, steps_per_epoch_); }
  bool steps_finished() const { return state_.step >= steps_in_run(); }
  bool epoch_finished() const { return state_.step_in_epoch == steps_per_epoch_; }
  /// Evaluations without a better accuracy, as many as train.patience allows.
  bool out_of_patience() const {
    return job_.train.patience > 0 && state_.patience->without_better >= job_.train.patience;
  }
  bool at_end() const { return steps_finished() || out_of_patience(); }
  /// True if train.evaluate_every_steps wants an evaluation after this step, within an epoch.
  bool evaluates_here() const {
    return state_.step_in_epoch > 0 && !epoch_finished() && is_due(job_.train.evaluate_every_steps);
  }
  bool is_due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }
  void train_epoch();
  std::int64_t next_series() const;
  void after_series(const StepSeries& series);
  /// The last step up to this one whose shares were computed again, in this start or one before; 0: none.
  std::int64_t last_replay(std::int64_t step) const;
  [[noreturn]] void end_wrong(const WrongRankError& error);
  [[noreturn]] void fail(const StepSeries& series);
  /// Ends the run if a rank could not read samples, after saving the state before the step or evaluation. Collective.
  /// @throws AgreedError  that rank's
  void end_if_unread();
  void print_loss(std::int64_t every);
  void finish_epoch();
  void evaluate_within_epoch();
  bool evaluate_now(EvaluatedPart part);
  bool stop_wanted() const { return stop_requested() || time_limit_.reached(); }
  bool leave_evaluation() const;
  int stop_on_request();
  int finish();

  // Saving, and waiting for the disk: run_saving.cpp.
  /// Brings the state to rank 0 and looks at its weights: to be called before they are evaluated. Collective.
  /// @throws AgreedError  70, names tensors and step
  void require_finite_weights();
  /// True if run.keep.best wants a checkpoint of this state. The best weights are those that were evaluated:
  /// they are saved at once, or they are gone. Rank 0's word. Collective.
  bool is_best() const;
  /// Compares the copies that several ranks hold, as used in each step and as they are now. Nothing is
  /// evaluated or saved before. Collective.
  /// @throws WrongRankError
  void compare_copies();
  /// The state is in a checkpoint, or on its way into one.
  void note_saved();
  bool is_saved() const;
  /// Starts saving in the background, unless this state is saved, or being saved. Collective.
  /// @throws IoError      of an earlier save
  /// @throws AgreedError  as require_finite_weights()
  void save();
  void wait_for_disk();
  /// Returns when the last save is safely on disk. Collective.
  /// @param what_ends  "stopped on request", for the message
  /// @throws AgreedError if it is not: then this is no end of a run
  void wait_until_saved(const char* what_ends);
  /// No step follows: what is traced is written. Collective.
  void end_trace();
  /// Keeps the fingerprints of the steps just taken, where the job keeps a trail. Collective.
  void add_to_trail(const StepSeries& series);
  /// Makes records of what was added, and writes them. Collective.
  void flush_trail();

  // Reports during the run, to people and as events of metrics.jsonl: run_report.cpp. On rank 0; others are silent.
  void say(const std::string& line);
  void tell_epoch_starts();
  void tell_series(const StepSeries& series);
  void tell_loss();
  void tell_step(const StepTotals& totals);
  void tell_epoch();
  void tell_evaluation();
  void draw_curve();
  void tell_why_it_stops();
  void tell_stopped();
  void tell_end();
  std::string why_it_ended_early() const;
  PublishedComparison compare_weights(const std::string& sha256);
  void say_weights(const std::string& sha256, const PublishedComparison& published);
  /// Rate of the last step.
  double learning_rate() const;
  double samples_per_second(double seconds) const;

  // Announcements, made once: announcements.cpp.
  /// A few lines for people: model, data, ranks and devices, batch and buckets, optimiser and schedule.
  std::vector<std::string> announcement(int hosts) const;
  void tell_resumed();
  int tell_nothing_left();
  std::string how_to_train_on() const;
  void tell_memory();
  std::string host_memory();
  std::string device_memory();
  void tell_devices();
  void tell_batch_shapes(std::int64_t steps);

  Job job_;  ///< run.dir as it was chosen, on rank 0
  Communicator& comm_;
  DatasetFuture data_;
  Clock::time_point process_start_;
  DataWatch data_watch_;  ///< from before the data are there
  JobSetup setup_;
  StepTrace trace_;  ///< before the strategy, which asks for the rank's timeline
  std::unique_ptr<ParallelStrategy> strategy_;
  std::shared_ptr<RankChecks> checks_;
  TimeLimit time_limit_;
  std::int64_t steps_per_epoch_;
  Progress progress_;
  std::optional<RunDirectory> directory_;  ///< rank 0's
  std::shared_ptr<FaultInjector> faults_;  ///< none, unless the job asks for one
  StartingWeights initial_weights_;        ///< rank 0: what train.initial_weights gave
  RunState state_;
  std::vector<std::string> hosts_;  ///< of all ranks
  EvaluatedPart judge_;             ///< what is evaluated while it trains
  Evaluations evaluations_;         ///< of the weights that were evaluated last
  std::int64_t first_step_ = 0;     ///< where this start of the run began
  bool stopping_ = false, nothing_left_ = false;
  std::string names_taken_;  ///< the sentence of a run that had no names of classes
  bool lacks_page_ = false;  ///< the run had ended before, and was killed before its page was written

  std::int64_t finite_step_ = -1;          ///< the last one whose weights were looked at
  std::int64_t saved_step_ = -1;           ///< of the checkpoint that is saved, or being saved
  int saved_evaluations_ = 0;              ///< and how many evaluations of that step it holds
  std::size_t trail_slots_;                ///< of a step; 0: no trail is kept
  std::vector<std::uint64_t> trail_rows_;  ///< of the last steps, which are not written
  std::vector<std::uint64_t> own_sums_;    ///< likewise

  std::string first_line_;  ///< which directory was chosen, and why
  Clock::time_point run_start_, epoch_start_;
  EpochClock epoch_clock_;                ///< of the epoch under way, as far as this start of the run took it
  double epoch_seconds_ = 0;              ///< of the steps of the epoch that has ended
  std::int64_t epoch_start_samples_ = 0;  ///< those before this start of the run are not in its time
  bool curve_is_drawn_ = false;
  std::vector<std::string> rank_devices_;  ///< where the job wants shapes printed
};

// Start of a run.

using WhenFinished = std::function<void(const std::string& directory, const TrainTestData& data)>;

/// Trains as the job says, on all ranks that were started, and writes the run directory. The last line on
/// standard output is "weights sha256 HEX".
/// @param when_finished  is called in rank 0's process with the directory and the data of a run that has come to its
///                       end, when its lock is given back and no rank waits any more; may be empty
/// @returns the exit code: 0, or 75 when stopped on request with everything saved
/// @throws Error for what is wrong before the ranks are up; later errors are reported and become the exit
/// code
int train(const Job& job, const WhenFinished& when_finished = {});

}  // namespace lockstep
