// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training steps: the heart of the program. Everything around them (epochs, logs, checkpoints) is
/// training_run.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "data/sampler.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/step_trial.hpp"
#include "trainer/engine/weight_update.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// Where a step stands in the run. Everything random in it follows from this and the seed.
struct StepPosition {
  std::int64_t epoch = 0;          ///< from 0
  std::int64_t step_in_epoch = 0;  ///< from 0
  std::int64_t global_step = 0;    ///< optimiser steps taken before this one
};

/// What a series of steps came to, over all ranks.
struct StepSeries {
  std::int64_t steps = 0;    ///< steps that moved the weights
  std::int64_t samples = 0;  ///< of those steps
  std::int64_t correct = 0;
  WideSum loss_units;  ///< sum over samples, in units of 2^-32 nats
  /// Of the last of those steps; or, if there is a failure, of the step after them.
  StepTotals last;
  std::optional<StepFailure> failure;  ///< why the step after them could not be taken
  /// Of each of those steps, one behind the other, the row that weight_update.hpp describes, of what this rank
  /// holds. Empty unless the job keeps a trail.
  std::vector<std::uint64_t> fingerprints = {};

  /// Counts a step that moved the weights.
  void add(const StepTotals& step);
};

/// `count` steps further in the same epoch.
StepPosition after(const StepPosition& position, std::int64_t count);

/// How many steps a series may have, so that requests to stop are heard about twice a second, however long a step
/// takes. It starts with one step; the same on all ranks, which agree on what steps took.
class SeriesLength {
 public:
  /// @param longest  however short steps are
  explicit SeriesLength(std::int64_t longest) : longest_(longest) {}

  std::int64_t steps() const { return steps_; }
  /// A series has ended that took this rank so long; at least one step. Collective, with the same number of steps.
  void took(std::int64_t steps, double seconds, Communicator& comm);

 private:
  std::int64_t longest_;
  std::int64_t steps_ = 1;
  std::int64_t series_ = 0;  ///< so far
};

/// The job's units as they are before the first step.
GradientUnits make_gradient_units(const Network& network, std::int64_t global_grains);

/// Seconds spent since the engine was made or reset_times() was called.
struct StepTimes {
  double total = 0;
  double input = 0;      ///< CPU: gather and normalise, of the busiest thread
  double under_way = 0;  ///< CPU: from when the first gradients left until all were summed
  double exposed = 0;    ///< CPU: waiting for communication after backward had ended
  double optimizer = 0;  ///< CPU
  double queueing = 0;   ///< GPU: the host's time to queue the steps
  /// CPU: of each bucket, from the start of the arithmetic until it left.
  std::vector<double> until_left = {};
};

/// How the job's training data is sharded: which samples this rank computes.
DistributedSampler::Options sampler_options(const Job& job, const Dataset& data, const Communicator& comm);

/// One rank's share of the training: computes its grains, sums gradients over all ranks while backward runs,
/// moves the weights. Collective: all ranks make the same calls.
class StepEngine {
 public:
  virtual ~StepEngine() = default;

  /// Trains `count` steps from `position` on, which lie in one epoch; fewer if one fails: then the weights
  /// stay as they were before it.
  virtual StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) = 0;
  /// The longest series that is worth while; the same on all ranks. Requests to stop are heard between them.
  virtual std::int64_t longest_series() const = 0;
  /// Loss and accuracy over the job's test set, spread over all ranks. A rank whose `leave` says so gives up,
  /// and all hear of it.
  virtual Evaluation evaluate(const LeaveEvaluation& leave) = 0;

  /// Brings weights and what the optimiser remembers from where they are trained to the host, and back after
  /// a change there or of the units. Nothing to do on a CPU.
  virtual void fetch_state() {}
  virtual void commit_state() {}
  /// The host's [parameters].
  virtual std::span<float> weights() = 0;
  /// What the optimiser remembers, on the host.
  virtual std::vector<OptimizerBufferView> optimizer_buffers() = 0;
  /// Part of the state: what a checkpoint must keep, because it decides bits.
  virtual GradientUnits& gradient_units() = 0;

  virtual const WeightUpdate& weight_update() const = 0;
  virtual const DistributedSampler& sampler() const = 0;
  /// For faults on purpose: lets `see` see the sums of the next step that is taken, once they are complete.
  /// @throws ConfigError  it cannot
  virtual void probe_next_sums(const GradientReducer::SeeSums& see);

  virtual StepTimes times() const = 0;
  virtual void reset_times() = 0;
};

/// The engine for the setup's device. Borrows all references.
std::unique_ptr<StepEngine> make_step_engine(const Job& job, const JobSetup& setup, Communicator& comm);

}  // namespace lockstep
