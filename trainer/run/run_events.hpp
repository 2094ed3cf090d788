// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Events of a run, their listeners, and the lines of metrics.jsonl that they become, one JSON object each. Each event
/// and field that is written here is a row of docs/reference/metrics.md, too: a test compares them.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/run/epoch_clock.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/strategy.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct BegunEpoch {
  std::int64_t epoch = 0, epochs = 0;       ///< from 1
  std::int64_t steps_taken = 0, steps = 0;  ///< this epoch's
  std::int64_t steps_left_in_run = 0;
};

/// The last of the steps just taken. Numbers that nothing has measured are left out.
struct LoggedStep {
  const RunState& state;
  const StepTotals& totals;  ///< that step's
  double learning_rate = 0;
  LossWindow answers = {};  ///< since the last such event
  std::optional<double> gradient_norm = {}, samples_per_second = {};
};

/// An epoch whose steps are all taken, and whose weights were evaluated.
struct FinishedEpoch {
  const RunState& state;
  const Evaluations& evaluations;
  double learning_rate = 0;
  std::optional<double> rounded_to_zero = {};  ///< as StepMeasures has it
  const EpochClock* clock = nullptr;           ///< null: it was not measured
  std::vector<RankClock> ranks = {};
};

struct FinishedRun {
  const RunState& state;
  const Evaluations& evaluations;
  std::string sha256;  ///< the weights'
  PublishedComparison published;
  double seconds = 0;          ///< since this start
  std::int64_t from_step = 0;  ///< that this start went on from
  bool stopped_early = false;
  std::string strategy = {};
  std::vector<std::pair<std::string, double>> numbers = {};  ///< the strategy's own
};

/// Events in the order of a run; each does nothing unless it is overridden.
class RunListener {
 public:
  virtual ~RunListener() = default;

  virtual void epoch_begins(const BegunEpoch& /*epoch*/) {}
  virtual void steps_taken(const StepSeries& /*series*/) {}
  /// The losses in RunState::unprinted are as many as run.print_loss_every_steps wants.
  virtual void loss_is_due(const RunState& /*state*/, double /*learning_rate*/) {}
  virtual void step_is_due(const LoggedStep& /*step*/) {}
  /// Within an epoch.
  virtual void evaluated(const RunState& /*state*/, const Evaluations& /*found*/) {}
  virtual void epoch_finished(const FinishedEpoch& /*epoch*/) {}
  virtual void run_finished(const FinishedRun& /*run*/) {}
};

// The lines. Their numbers follow from the job and its data, times aside: `lockstep prove` computes them again.

/// The "start" event of metrics.jsonl.
nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts);
/// Appends the source of the weights, unless they are the network's own.
void add_initial_weights(nlohmann::ordered_json& start, const StartingWeights& initial);
nlohmann::ordered_json step_event(const LoggedStep& step);
/// Event of the steps since the last such event.
nlohmann::ordered_json loss_event(const RunState& state, const LossWindow& window, double learning_rate);
// Names of evaluated numbers: "test_loss" and so on, or "validation_loss", as far as they exist. Averages of
// the weights have "ema_test_loss" and so on.

/// Event of an evaluation within an epoch.
nlohmann::ordered_json evaluation_event(const RunState& state, const Evaluations& evaluations);
nlohmann::ordered_json epoch_event(const FinishedEpoch& epoch);
nlohmann::ordered_json end_event(const FinishedRun& run);

}  // namespace lockstep
