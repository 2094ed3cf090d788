// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is told of a run: lines for people, on the terminal and in the log, and events in metrics.jsonl.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/run/announcements.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/strategies/strategy.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// What a run came to.
struct TrainedWeights {
  std::string sha256;
  PublishedComparison published;
};

/// Every rank has one and tells it everything; only rank 0's, which has a run directory, passes it on.
class RunReport {
 public:
  /// Borrows all four.
  RunReport(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
            const Communicator& comm);
  /// From now on there is a log, and events are written. Borrows it.
  void write_to(RunDirectory& directory) { directory_ = &directory; }

  /// @param choice  which run directory was chosen, and why; empty: the job names it
  void start(const std::string& choice, int hosts);
  void new_run(int hosts, double setup_seconds);
  /// @param data_known  the checkpoint says what the run was trained on
  /// @param arithmetic_since  RunState::arithmetic_since
  void resumed_run(std::int64_t step, bool data_known, std::int64_t arithmetic_since);
  /// The run had been finished before: nothing is written.
  void nothing_left(const RunLength& length, const TrainedWeights& weights);

  void start_epoch(const RunState& state, const RunLength& length);
  /// Moves the bar.
  void steps(const StepSeries& series);
  /// Each on a line of its own.
  void say_lines(const std::vector<std::string>& lines);
  /// The line of PyTorch's tutorials, "[1,   100] loss: 0.123", and a "loss" event.
  void mean_loss(const RunState& state);
  /// Writes the "step" event of the last of these steps.
  void log_step(const RunState& state, const StepTotals& totals);
  /// All steps that are taken now are taken: what follows is not part of their time.
  void end_epoch();
  void evaluated(const RunState& state, const Evaluation& evaluation);

  enum class StopReason { kSignal, kTimeLimit, kOtherRank };
  void stopping(StopReason reason);
  void stopped(const RunLength& length);
  /// What the strategy has to say at the end.
  void summary(const std::vector<std::string>& lines);
  /// How the ranks compare; nothing: that is not known.
  void ranks(const std::vector<RankScore>& scores, std::int64_t step);
  void done(const RunState& state, const Evaluation& evaluation, const StrategySummary& of_strategy,
            const TrainedWeights& weights);

 private:
  void say(const std::string& line);
  void say_weights(const TrainedWeights& weights);
  void say(const std::vector<Field>& fields);
  /// Of the step taken last.
  double learning_rate(const RunState& state) const;
  double samples_per_second(const RunState& state, double seconds) const;
  void draw_curve(const RunState& state, const Evaluation& evaluation);

  const Job& job_;
  const JobSetup& setup_;
  const ParallelStrategy& strategy_;
  const Communicator& comm_;
  Progress progress_;
  RunDirectory* directory_ = nullptr;
  Clock::time_point run_start_, epoch_start_;
  bool curve_is_drawn_ = false, curve_failed_ = false;
  double epoch_seconds_ = 0;              ///< of the steps of the epoch that has ended
  std::int64_t epoch_start_samples_ = 0;  ///< those before this start of the run are not in its time
};

}  // namespace lockstep
