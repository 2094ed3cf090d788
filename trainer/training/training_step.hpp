// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A training step as the host sees it. That is its place in the run, whether its sums may move the weights, and its
/// result. Whether they may is decided between the reduction and the update, by every rank alike. A step is a
/// trial that may be repeated with other units, since everything random in it is keyed by its position.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "comm/reduce/sum_check.hpp"
#include "common/error.hpp"
#include "common/timeline.hpp"
#include "data/sampler.hpp"
#include "trainer/training/step_series.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep {

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
  /// As GradientReducer::Sums::show(), where ParallelStrategy::require_sight() does not refuse it.
  virtual void show_sums(const GradientReducer::SeeSums& /*see*/) { LOCKSTEP_CHECK(!"at hand"); }
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

}  // namespace lockstep
