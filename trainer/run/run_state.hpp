// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The way of a run's state into checkpoints and back.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/strategy.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// The place of a run's next step.
inline StepPosition position(const RunState& state) {
  return {.epoch = state.epoch, .step_in_epoch = state.step_in_epoch, .global_step = state.step};
}
inline LossWindow sums_of(const StepSeries& series) {
  return {series.steps, series.samples, series.correct, series.loss_units};
}
/// The accuracy of this step's weights; nothing: they were not evaluated.
auto& accuracy_on(EvaluatedPart part, auto& state) {
  return part == EvaluatedPart::kTest ? state.test_accuracy : state.validation_accuracy;
}

/// Steps that the job asks for in all.
std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch);

/// The next step that is a multiple of this gets a line in metrics.jsonl; 0: none does. Depends on the steps taken and
/// not on those to come, so that a run which is prolonged has the lines of one that was long from its start.
std::int64_t log_spacing(const Job& job, std::int64_t steps_taken);

/// The set that a run is evaluated on while it trains. It decides the best checkpoint and the patience.
inline EvaluatedPart judging_part(const Job& job) {
  return job.data.validation.is_given() ? EvaluatedPart::kValidation : EvaluatedPart::kTest;
}

/// Facts for a checkpoint of this state, without the tensors.
CheckpointFacts checkpoint_facts(const RunState& state, const Job& job, const JobSetup& setup,
                                 const Communicator& comm, const GradientUnits& units);

/// The whole checkpoint.
CheckpointState checkpoint_of(const RunState& state, const Job& job, const JobSetup& setup,
                              const Communicator& comm, const TrainedState& trained);

/// @throws DataError  a run of this sampler's job cannot be at the checkpoint's position
void require_possible_position(const CheckpointFacts& facts, const DistributedSampler& sampler);

/// The reverse: fills weights, what the optimiser remembers, and units (those of a run's start where the
/// checkpoint has none).
/// @throws ConfigError if the checkpoint is of another network than the job's, or of one with other settings
/// @throws DataError   if it was trained on other data than the job's, or stands where a run of this job on
///                     these data cannot stand, or
///                     holds other things that its optimiser remembers than the job's optimiser does
RunState restore(const CheckpointState& checkpoint, const Job& job, const JobSetup& setup,
                 const DistributedSampler& sampler, const TrainedState& trained);

/// After restore(): counts evaluations for train.patience from here on if those before were on another number of test
/// samples (data.test_samples).
void restart_patience(RunState& state, const CheckpointFacts& facts, const Job& job, const JobSetup& setup);

/// Head of the trail of a run of `job`, with its setup.
TrailHead trail_head(const Job& job, const JobSetup& setup, const std::vector<std::string>& buffers);

}  // namespace lockstep
