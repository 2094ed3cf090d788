// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whether a step's sums may move the weights: decided between the reduction and the update, by every rank
/// alike. A step is a trial that may be repeated with other units, since everything random in it is keyed by
/// its position.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "models/arena.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Why a step could not be taken.
struct StepFailure {
  static constexpr std::size_t kNoTensor = SIZE_MAX;

  std::int64_t losses = 0;  ///< samples whose loss is NaN or infinite
  std::int64_t terms = 0;   ///< parts of the gradient that are NaN or infinite
  std::size_t tensor =
      kNoTensor;  ///< the last one in arena order with such terms, where backward met them first
};

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
  /// @param largest_sums  asked for the largest |sum| of each tensor in its units, at the few steps where
  ///                      that matters; none: fp32 sums, which have no unit
  Outcome decide(const StepTotals& totals, std::span<const TensorRefusals> refusals,
                 const std::function<std::vector<double>()>& largest_sums);

  /// After kFail.
  const StepFailure& failure() const { return failure_; }

 private:
  GradientUnits& units_;
  std::int64_t global_step_;
  bool may_refine_;
  std::vector<bool> raised_;  ///< in this step: such a tensor's unit is not lowered in it again
  StepFailure failure_;
};

// What a person reads when a step cannot be taken.

/// One line: the step, what is NaN or infinite in it, the largest weight before it, and what helps.
///
/// @param samples  of the step
/// @param step     counted from 1
/// @param weights  before the step, arena order
std::string describe_failure(const StepFailure& failure, std::int64_t samples, std::int64_t step,
                             const ParameterLayout& layout, std::span<const float> weights);

}  // namespace lockstep
