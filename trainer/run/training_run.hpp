// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A training run from start to end: the loop over epochs and steps, which knows what is due when.
#pragma once

#include "common/machine.hpp"
#include "trainer/run/epoch_clock.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/run/run_recorder.hpp"
#include "trainer/run/run_reporter.hpp"
#include "trainer/run/stop_signal.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// Every rank goes through the same steps. What happens is told to listeners: rank 0's files, terminal and log.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit);

  /// To the end, or until it is asked to stop. @returns the exit code of train()
  int run();
  /// After run() has returned 0, on rank 0: its directory; "" where there was nothing left to do.
  std::string finished_directory() const { return run_.files || start_.lacks_page ? run_.job.run.dir : ""; }

 private:
  int run_to_the_end();
  void announce();
  void train_epoch();
  std::int64_t next_series() const;
  void after_series(const StepSeries& series);
  bool is_due(std::int64_t every) const { return every > 0 && run_.state.step % every == 0; }
  /// True if train.evaluate_every_steps wants an evaluation after this step, within an epoch.
  bool evaluates_here() const {
    return run_.state.step_in_epoch > 0 && !run_.epoch_finished() &&
           is_due(run_.job.train.evaluate_every_steps);
  }
  void finish_epoch();
  void evaluate_within_epoch();
  bool evaluate_now(EvaluatedPart part);
  bool leave_evaluation() const;
  int stop_on_request();
  int finish();

  /// The last step up to this one whose shares were computed again, in this start or one before; 0: none.
  std::int64_t last_replay(std::int64_t step) const {
    const std::int64_t every = run_.checks->replays_every(), last = every > 0 ? step - step % every : 0;
    return last > run_.first_step ? last : run_.state.replayed;
  }
  [[noreturn]] void end_wrong(const WrongRankError& error);
  [[noreturn]] void fail(const StepSeries& series);
  /// Ends the run if a rank could not read samples, after saving the state before the step or evaluation. Collective.
  /// @throws AgreedError  that rank's
  void end_if_unread();
  /// No step follows: the state is on disk, and what is traced is written. As RunRecorder::save_at_end().
  void save_at_end(const char* what_ends);
  void end_trace();

  template <typename Event, typename... Facts>
  void tell(Event event, const Facts&... facts) {
    for (RunListener* listener : listeners_) (listener->*event)(facts...);
  }

  DatasetFuture data_;
  Clock::time_point process_start_, run_start_{};
  TimeLimit time_limit_;
  DataWatch data_watch_;  ///< from before the data are there
  RunContext run_;
  RunStart start_;
  RunRecorder recorder_;
  Progress progress_;
  RunReporter reporter_;
  std::unique_ptr<RunListener> shapes_;    ///< null: the job wants none
  std::vector<RunListener*> listeners_;    ///< in the order in which they are told
  std::shared_ptr<FaultInjector> faults_;  ///< none, unless the job asks for one
  EpochClock clock_;                       ///< times the epoch under way, since this start of the run
  bool stopping_ = false;
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
