// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The part of a run that changes from step to step, beside the weights and what the optimiser
/// remembers; and its way into checkpoints.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/strategy.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// What training came to since it was last told: exact, so that neither ranks nor a resume in between change a digit.

/// Plain numbers, so that it can be broadcast.
struct LossWindow {
  std::int64_t steps = 0, samples = 0;
  std::int64_t correct = 0;  ///< samples whose answer was right, as they were trained on
  WideSum loss_units;        ///< sum over samples, in units of 2^-32 nats

  void add(const StepSeries& series);
  double mean() const { return loss_units.value() / kLossScale / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
};

/// Plain numbers, so that it can be broadcast.
struct RunState {
  StepPosition position;
  std::int64_t epoch_samples = 0;  ///< of the steps taken in the epoch under way
  std::int64_t epoch_correct = 0;
  WideSum epoch_loss_units;   ///< sum over samples, in units of 2^-32 nats: exact, so that neither ranks nor
                              ///< pauses leave a trace
  double test_accuracy = -1;  ///< of the last evaluation; -1 before the first
  std::int64_t evaluated_step = -1;  ///< the step whose weights that was an evaluation of
  double validation_accuracy = -1;   ///< the same two on what is held out
  std::int64_t validated_step = -1;
  CheckpointPatience patience;        ///< counted whether the job asks for it or not
  std::int64_t replayed = 0;          ///< CheckpointFacts::replayed; 0: nothing
  std::int64_t arithmetic_since = 0;  ///< the steps before were computed by a version that rounded elsewhere
  /// Steps of the epoch under way since run.print_loss_every_steps printed. Behind a checkpoint its answers are not
  /// known.
  LossWindow unprinted;
  /// The same since the last event "step". Behind a checkpoint its loss is not known.
  LossWindow unlogged;

  bool is_evaluated(EvaluatedPart part = EvaluatedPart::kTest) const {
    return part == EvaluatedPart::kTest ? evaluated_step == position.global_step && test_accuracy >= 0
                                        : validated_step == position.global_step && validation_accuracy >= 0;
  }
  /// The weights of this step come to that.
  void note(EvaluatedPart part, double accuracy);

  double epoch_loss() const;  ///< sum over samples, in nats
  double mean_epoch_loss() const { return epoch_loss() / static_cast<double>(epoch_samples); }
  double epoch_accuracy() const {
    return static_cast<double>(epoch_correct) / static_cast<double>(epoch_samples);
  }
  void add(const StepSeries& series);
  void start_next_epoch();
};

/// Steps that the job asks for in all.
std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch);

/// On what a run is evaluated while it trains, by which its best checkpoint is chosen and its patience runs out.
inline EvaluatedPart judging_part(const Job& job) {
  return job.data.validation.is_given() ? EvaluatedPart::kValidation : EvaluatedPart::kTest;
}

/// What a checkpoint of this state says beside its tensors.
CheckpointFacts checkpoint_facts(const RunState& state, const Job& job, const JobSetup& setup,
                                 const Communicator& comm, const GradientUnits& units);

/// @throws DataError  a run of this sampler's job cannot stand where the checkpoint does
void require_possible_position(const CheckpointFacts& facts, const DistributedSampler& sampler);

/// The reverse: fills weights, what the optimiser remembers, and units (those of a run's start where the
/// checkpoint has none).
/// @throws ConfigError if the checkpoint is of another network than the job's, or of one with other settings
/// @throws DataError   if it was trained on other data than the job's, or stands where a run of this job on
///                     these data cannot stand, or
///                     holds other things that its optimiser remembers than the job's optimiser does
RunState restore(const CheckpointState& checkpoint, const Job& job, const JobSetup& setup,
                 const DistributedSampler& sampler, const TrainedState& trained);

/// What the trail of a run of `job` says of it, on what was set up for it.
TrailHead trail_head(const Job& job, const JobSetup& setup, const std::vector<std::string>& buffers);

}  // namespace lockstep
