// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A training step as the host sees it. That is its place in the run, whether its sums may move the weights, and its
/// result. Whether they may is decided between the reduction and the update, by every rank alike. A step is a
/// trial that may be repeated with other units, since everything random in it is keyed by its position.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "comm/reduce/sum_check.hpp"
#include "common/timeline.hpp"
#include "data/sampler.hpp"
#include "models/arena.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Position of a step in the run. Everything random in it follows from this and the seed.
struct StepPosition {
  std::int64_t epoch = 0;          ///< from 0
  std::int64_t step_in_epoch = 0;  ///< from 0
  std::int64_t global_step = 0;    ///< optimiser steps taken before this one
};

/// Key of a grain in that step. @param first_sample  of the grain, in the global batch
inline PassKey pass_key(std::uint64_t seed, const StepPosition& position, std::int64_t first_sample) {
  return {.seed = seed,
          .step = static_cast<std::uint32_t>(position.global_step),
          .first_sample = static_cast<std::uint32_t>(first_sample)};
}

/// `count` steps further in the same epoch.
StepPosition after(const StepPosition& position, std::int64_t count);

/// Why a step could not be taken.
struct StepFailure {
  static constexpr std::size_t kNoTensor = SIZE_MAX;

  std::int64_t losses = 0;  ///< samples whose loss is NaN or infinite
  std::int64_t terms = 0;   ///< parts of the gradient that are NaN or infinite
  std::size_t tensor =
      kNoTensor;  ///< the last one in arena order with such terms, where backward met them first
};

/// Result of a series of steps, over all ranks.
struct StepSeries {
  std::int64_t steps = 0;    ///< steps that moved the weights
  std::int64_t samples = 0;  ///< in those steps
  std::int64_t correct = 0;
  WideSum loss_units;  ///< sum over samples, in units of 2^-32 nats
  /// Totals of the last of those steps; or, if there is a failure, of the step after them.
  StepTotals last;
  std::optional<StepFailure> failure;  ///< why the step after them could not be taken
  /// Rows of those steps, one after the other, as weight_update.hpp describes them, of what this rank holds. Empty
  /// unless the job keeps a trail.
  std::vector<std::uint64_t> fingerprints = {};
  /// Fingerprints of this rank's own sums before they left, one for each of those steps. Empty, on all ranks, where
  /// they have none: one rank alone, fp32 sums, NCCL.
  std::vector<std::uint64_t> own_sums = {};

  /// Counts a step that moved the weights.
  void add(const StepTotals& step);
};

/// Steps of a series, so that requests to stop are heard about twice a second, however long a step
/// takes. It starts with one step; the same on all ranks, which agree on what steps took.
class SeriesLength {
 public:
  /// @param longest  however short steps are
  explicit SeriesLength(std::int64_t longest) : longest_(longest) {}

  std::int64_t steps() const { return steps_; }
  std::int64_t longest() const { return longest_; }
  /// A series has ended that took this rank so long; at least one step. Collective, with the same number of steps.
  void took(std::int64_t steps, double seconds, Communicator& comm);

 private:
  std::int64_t longest_;
  std::int64_t steps_ = 1;
  std::int64_t series_ = 0;  ///< so far
};

/// The largest |sum| of each tensor in its units. Empty for fp32 sums, which have no unit.
using LargestSums = std::function<std::vector<double>()>;
/// Refusals of each tensor over all ranks, if the step just computed were summed in the current units. Empty: not
/// known before it is computed.
using ForeseenRefusals = std::function<std::vector<TensorRefusals>()>;

class StepTrial {
 public:
  enum class Outcome {
    kTake,    ///< move the weights
    kRepeat,  ///< units have changed: compute the same step again
    kFail,    ///< NaN or infinity: no unit helps
  };

  /// @param units  borrowed; those of this rank's reducer or device
  StepTrial(GradientUnits& units, std::int64_t global_step);

  /// @param refusals      of each tensor over all ranks; looked at if something was refused
  /// @param largest_sums  asked at the few steps where that matters
  /// @param foreseen      asked where units became finer: a trial in which terms are too large for these is spared.
  ///                      Where it is empty, units end as the same
  Outcome decide(const StepTotals& totals, std::span<const TensorRefusals> refusals,
                 const LargestSums& largest_sums, const ForeseenRefusals& foreseen = {});

  /// After kFail.
  const StepFailure& failure() const { return failure_; }

 private:
  /// @returns how many terms were too large for their units, which are larger now
  std::int64_t raise(std::span<const TensorRefusals> refusals);

  GradientUnits& units_;
  std::int64_t global_step_;
  bool may_refine_;
  std::vector<bool> raised_;  ///< in this step: such a tensor's unit is not lowered in it again
  StepFailure failure_;
};

/// Result of a step's reduction, over all ranks.
struct StepSums {
  StepTotals totals;
  std::span<const TensorRefusals> refusals = {};  ///< for each tensor, if something was refused
};

/// A step whose sums are complete and have not moved the weights. Every call is collective.
class ReducedStep {
 public:
  ReducedStep() = default;
  virtual ~ReducedStep() = default;
  ReducedStep(const ReducedStep&) = delete;
  ReducedStep& operator=(const ReducedStep&) = delete;

  virtual const StepPosition& position() const = 0;
  /// Fingerprints of what this rank's team has added up (Teams::share_parts).
  virtual SumFingerprints own_share() = 0;
  /// True: gradients_of() so many grains can be computed here.
  virtual bool has_room_for(std::size_t grains) = 0;
  /// Computes the gradients of any grains of this step, and leaves its sums as they are.
  /// @returns as own_share()
  virtual SumFingerprints gradients_of(const std::vector<Grain>& grains) = 0;
  /// As GradientReducer::Sums::show().
  virtual void show_sums(const GradientReducer::SeeSums& see) = 0;
};

/// How a rank computes a step. Every call is collective.
class StepWork : public ReducedStep {
 public:
  /// Batch, forward, loss, backward, and the wait for the sums over all ranks; again where the units have changed.
  virtual StepSums reduce() = 0;
  /// Moves the weights by these sums.
  virtual void take(const StepTotals& totals) = 0;
  /// False: sums are fp32, which has no unit.
  virtual bool has_units() const = 0;
  /// The largest |sum| of each tensor in its units.
  virtual std::vector<double> largest_sums() = 0;
  /// Refusals of each tensor over all ranks, if the step just computed were summed in the current units. Nothing:
  /// they are not known.
  virtual std::vector<TensorRefusals> foreseen_refusals() { return {}; }
  /// Brings the sums just computed into the units as they are now, without computing the step. False: it cannot, and
  /// they are to be computed again. Alike on all ranks.
  virtual bool sum_again() { return false; }
};

class StepObserver;

/// Computes a step until its sums may move the weights or never will. Adds it to the series: taken, or as a failure.
/// Collective.
/// @param observer  sees the step just before its update
/// @param timeline  where its parts are written down; may be null
void take_step(StepWork& work, GradientUnits& units, StepObserver& observer, Timeline* timeline,
               StepSeries& series);

/// Explains to a person why a step cannot be taken. One line: the step, what is NaN or infinite in it, the largest
/// weight before it, and what helps.
///
/// @param samples  of the step
/// @param step     counted from 1
/// @param weights  before the step, arena order
std::string describe_failure(const StepFailure& failure, std::int64_t samples, std::int64_t step,
                             const ParameterLayout& layout, std::span<const float> weights);

}  // namespace lockstep
