// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All that a run says to people, on their terminal and in its log. Rank 0 speaks; others are silent.
#pragma once

#include "trainer/run/progress.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/run/run_events.hpp"
#include "trainer/run/stop_signal.hpp"

#include <string>
#include <vector>

namespace lockstep {

class RunReporter final : public RunListener {
 public:
  /// Borrows both.
  RunReporter(const RunContext& run, Progress& progress) : run_(run), progress_(progress) {}

  /// To the person who watches, and to the log, each line by itself. An empty text is none.
  void say(const std::string& text);

  // Messages that are said once: announcements.cpp.
  /// Says what is trained on what, from where.
  void announce(const RunStart& start, int hosts);
  /// To the person alone: nothing is written but a page that is missing.
  void nothing_left(const RunStart& start);
  /// How much memory the run took. Collective.
  void memory();
  /// The ranks' devices: "Let's use 2 GPUs! 0: cuda:0 NVIDIA H100, 1: ..."; with one rank nothing. Collective.
  void devices();
  /// The sizes of each batch just taken, on the ranks and as a whole; after devices(). Collective.
  void batch_shapes(const StepSeries& series);

  // Its course: run_reporter.cpp.
  /// The line of PyTorch's tutorials, "[1,   100] loss: 0.123".
  void loss_is_due(const RunState& state, double learning_rate) override;
  /// "epoch  1/10  step 200  validation loss 0.3121  accuracy 90.88 %".
  void evaluated(const RunState& state, const Evaluations& found) override;
  void epoch_finished(const FinishedEpoch& epoch) override;
  void run_finished(const FinishedRun& run) override;
  void why_it_stops(const TimeLimit& limit);
  void stopped();

 private:
  void say_weights(const std::string& sha256, const PublishedComparison& published);

  const RunContext& run_;
  Progress& progress_;
  bool has_scale_ = false;            ///< the curve that run.curve asks for is begun
  std::vector<std::string> devices_;  ///< names by rank
};

}  // namespace lockstep
