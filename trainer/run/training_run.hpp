// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One rank's view of a training run: epochs, evaluation, logs, checkpoints, stopping.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/run/announcements.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_report.hpp"
#include "trainer/run/run_saver.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/stop_signal.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// Every rank goes through the same steps; rank 0 alone speaks and writes.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit);

  /// To the end, or until it is asked to stop. @returns the exit code of train()
  int run();

 private:
  int run_to_the_end();

  // How it begins: train.cpp.
  void open_directory();
  void open_chosen(const std::string& path, bool wait);
  void restore_or_initialise();
  void announce();

  // How it goes on.
  bool steps_finished() const { return state_.position.global_step >= steps_in_run(); }
  bool epoch_finished() const;
  bool finished() const;
  bool is_due(std::int64_t every) const;
  void train_epoch();
  std::int64_t next_series() const;
  void after_series(const StepSeries& series);
  void print_shapes(std::int64_t steps);
  void print_loss(std::int64_t every);
  void finish_epoch();
  bool evaluate_now();
  bool stop_wanted() const;
  bool leave_evaluation() const;
  void say_why_it_stops();

  // How it ends.
  int stop_on_request();
  int finish();
  int report_nothing_left();

  RunLength length() const;
  std::int64_t steps_in_run() const;
  std::string whole_sha256();
  TrainedWeights trained_weights();

  Job job_;  ///< run.dir as it was chosen, on rank 0
  Communicator& comm_;
  Clock::time_point process_start_;
  JobSetup setup_;
  std::unique_ptr<ParallelStrategy> strategy_;
  RunReport report_;
  RunSaver saver_;
  TrailRecorder trail_;
  TimeLimit time_limit_;
  std::int64_t steps_per_epoch_;
  std::optional<BatchShapes> shapes_;      ///< where the job wants them printed
  std::optional<RunDirectory> directory_;  ///< rank 0's
  std::unique_ptr<FaultInjector> faults_;  ///< none, unless the job asks for one
  std::string first_line_;                 ///< which directory was chosen, and why
  RunState state_;
  std::optional<Evaluation> evaluation_;  ///< the last one
  std::int64_t first_step_ = 0;           ///< where this start of the run began
  bool stopping_ = false;
  bool nothing_left_ = false;
  bool data_checked_ = true;  ///< rank 0: the checkpoint says what it was trained on
};

}  // namespace lockstep
