// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A step's place in the run, and the result of a series: steps taken, and why the next was not.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "models/arena.hpp"

#include <cstddef>
#include <cstdint>
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
  /// The last one in arena order with such terms, where backward met them first.
  std::size_t tensor = kNoTensor;
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
  /// Rows of those steps, one after the other, as fingerprints.hpp describes them, of what this rank holds. Empty
  /// unless the job keeps a trail.
  std::vector<std::uint64_t> fingerprints = {};
  /// Fingerprints of this rank's own sums before they left, one for each of those steps. Empty, on all ranks, where
  /// they have none: one rank alone, fp32 sums, NCCL.
  std::vector<std::uint64_t> own_sums = {};

  /// Counts steps that moved the weights. @param totals  of all of them
  void add(std::int64_t count, const StepTotals& totals, const StepTotals& of_last);
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

/// Explains to a person why a step cannot be taken. One line: the step, what is NaN or infinite in it, the largest
/// weight before it, and what helps.
///
/// @param samples  of the step
/// @param step     counted from 1
/// @param weights  before the step, arena order
std::string describe_failure(const StepFailure& failure, std::int64_t samples, std::int64_t step,
                             const ParameterLayout& layout, std::span<const float> weights);

}  // namespace lockstep
