// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State that a rank trains on CPU cores, of a whole network or of a part of it. That is weights, optimiser state,
/// gradients as sums over ranks, and the fingerprints of its steps.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "common/buffers.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/training_step.hpp"
#include "trainer/training/weight_update.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

class HostArena {
 public:
  /// At least one parameter. Borrows the communicator.
  /// @param comm  the ranks that train the same; without buckets they sum nothing, and there is no reducer
  HostArena(const ArenaPart& part, Communicator& comm);

  std::span<float> weights() { return weights_.span(); }
  TrainedState state() { return {weights_.span(), buffers_.views(), units_}; }
  GradientUnits& units() { return units_; }
  GradientReducer& reducer() { return *reducer_; }
  const GradientReducer& reducer() const { return *reducer_; }
  /// The mean gradient of the last step, [parameters], clipped where the options say so.
  std::span<float> gradient() { return gradient_.span(); }
  /// The sum of the squares of each trained tensor's, in the order of the part, before it was clipped. It is 0 for
  /// one that is frozen.
  std::vector<double> gradient_squares() const {
    return update_.clip().is_given() ? squares_ : measure_gradient();
  }

  /// Sums are exact.
  bool has_units() const { return determinism_ == Determinism::kWorld; }
  /// Moves the weights along the mean of the reducer's sums, which are complete.
  /// @param rows  where fingerprints are kept, the step's row is appended to them
  /// @param norm  asked where the gradient is clipped by its norm
  void take_sums(std::int64_t global_step, std::vector<std::uint64_t>& rows,
                 const NormOfAll& norm = norm_of_all);
  /// Moves the weights along gradient().
  void take_gradient(std::int64_t global_step);

 private:
  using Row = std::span<std::uint64_t>;

  std::vector<double> measure_gradient() const;
  void clip_gradient(const NormOfAll& norm);
  /// Values of a step for the rule, and for each average of the weights.
  struct StepUpdate {
    StepScalars scalars;
    std::vector<float> shares;
  };
  StepUpdate update_of(std::int64_t global_step) const;
  void update(const StepUpdate& step, std::span<const UpdateTensor> tensors);
  void update_seen(const StepUpdate& step, Row row);

  AlignedBuffer<float> weights_, gradient_;
  WeightUpdate update_;
  OptimizerBuffers buffers_;
  Determinism determinism_;
  GradientUnits units_;
  std::optional<GradientReducer> reducer_;
  std::optional<FingerprintLayout> row_;  ///< for the trail
  std::vector<HeldTensor> held_;
  std::vector<double> squares_;  ///< sums of squares in the gradient that was clipped last
};

}  // namespace lockstep
