// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run's files say of the steps of an interval, against what these come to while they are replayed.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/strategies/strategy.hpp"
#include "trainer/tools/prove_replay.hpp"
#include "trainer/tools/prove_result.hpp"
#include "trainer/tools/prove_steps.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// On the rank that leads the replay. The strategy's whole state must be that of the step where something is said of
/// the weights.
class ClaimCheck {
 public:
  /// Borrows all five.
  ClaimCheck(const ReplayedRun& run, const Interval& interval, ParallelStrategy& strategy,
             const Communicator& comm, ProofResult& verdict)
      : run_(run), interval_(interval), strategy_(strategy), comm_(comm), verdict_(verdict) {}

  /// Looks for what is claimed of the interval. @throws DataError, IoError
  void read();
  /// The SHA-256 of the weights before the first step, where the run began from others' (train.initial_weights); or "".
  std::string initial_weights() const;
  /// The state that the replay starts from, as its checkpoint has it.
  void begin(const RunState& state);
  /// The next step behind this one where a series must end: something is claimed of it, or a printed loss begins
  /// behind it.
  std::int64_t next_stop(std::int64_t step) const;
  /// Keeps what the epoch has come to, if a printed loss begins here.
  void remember(const RunState& state);
  /// Whether something is claimed of the weights after this step, on that part of the data.
  bool wants_evaluation(std::int64_t step, EvaluatedPart part) const;

  /// What the replay knows of the step just taken.
  struct StepNumbers {
    StepTotals totals;
    std::optional<double> gradient_norm;  ///< where it was wanted, and this device has it
    Evaluations evaluations;              ///< those that were wanted
  };
  /// Whether an event tells of the gradient of this step.
  bool wants_gradient_norm(std::int64_t step) const;
  void compare_lines(const RunState& state, const StepNumbers& numbers);
  /// Of the checkpoint behind the interval.
  void compare_manifest(const CheckpointFacts& there, const RunState& state, const Evaluations& evaluations);

 private:
  std::vector<std::string> wrong_in(const ClaimedLine& line, const RunState& state,
                                    const StepNumbers& numbers);
  std::vector<std::string> wrong_in_step(const nlohmann::json& said, const RunState& state,
                                         const StepNumbers& numbers);
  double learning_rate(const RunState& state) const {
    return strategy_.weight_update().learning_rate(state.position.global_step - 1);
  }
  nlohmann::ordered_json end_of_run(const RunState& state, const Evaluations& evaluations) const;
  CheckpointFacts facts_here(const CheckpointFacts& there, const RunState& state,
                             const Evaluations& evaluations);
  std::optional<CheckpointPatience> patience_here(const CheckpointFacts& there) const;
  using SumsAtSteps = std::map<std::int64_t, LossWindow>;
  static std::optional<LossWindow> window(const SumsAtSteps& sums, const RunState& state, std::int64_t steps);
  bool is_of_another_test_set(std::int64_t step, std::int64_t samples);

  const ReplayedRun& run_;
  const Interval& interval_;
  ParallelStrategy& strategy_;
  const Communicator& comm_;
  ProofResult& verdict_;
  bool end_is_tested_ = false, end_is_validated_ = false;  ///< the checkpoint at the end says an accuracy
  CheckpointPatience start_patience_;
  std::vector<std::pair<std::int64_t, double>> judged_;  ///< steps whose accuracy train.patience counts
  std::set<std::int64_t> windows_;     ///< steps behind which a loss or an accuracy that is claimed begins
  SumsAtSteps sums_at_, answers_at_;   ///< what the epoch had come to there: losses; answers
  std::set<std::int64_t> test_sizes_;  ///< that the run's files speak of
  bool test_size_was_told_ = false;
};

}  // namespace lockstep
