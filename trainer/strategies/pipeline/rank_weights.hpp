// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The weights that a rank of a pipeline on CPUs holds, those of its stages; what its optimiser remembers of them;
/// and their gradients, summed over the replicas.
#pragma once

#include "comm/communicator.hpp"
#include "comm/gradient_reducer.hpp"
#include "comm/gradient_units.hpp"
#include "common/aligned_buffer.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/step_fingerprints.hpp"
#include "trainer/engine/weight_update.hpp"
#include "trainer/strategies/pipeline/held_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// An arena of its own, the stages' parameters one behind the other. A rank whose stages have no parameters has
/// nothing, and its calls do nothing.
class RankWeights {
 public:
  /// Borrows `held`.
  /// @param replicas  the ranks that hold the same stages; borrowed
  RankWeights(const Job& job, const Network& network, const HeldLayout& held, Communicator& replicas,
              std::int64_t steps_per_epoch, std::int64_t global_grains);

  std::span<float> weights() { return weights_.span(); }
  std::vector<OptimizerBufferView> optimizer_buffers() { return buffers_.views(); }
  /// Those of a stage, where they begin; null for one without.
  float* weights_of(int stage) { return begin_of(stage, weights_); }
  float* gradients_of(int stage) { return begin_of(stage, grain_gradient_); }

  /// The units of the whole network's tensors, before a step.
  void use_units(const GradientUnits& whole);
  void begin_step(int local_grains);
  /// Adds a grain's gradients of a range of a stage: [offset, offset + size) counted from gradients_of().
  void add(Ops& ops, int stage, std::size_t offset, std::size_t size, const GradientTerms& terms);
  /// Once for each grain of this rank.
  void count_grain(int samples);
  void poll();
  /// Every replica's sums are added up.
  void wait();
  /// Of each tensor held, over the replicas.
  std::span<const TensorRefusals> refusals() const;
  std::vector<double> largest_sums() const;
  /// Before the update: appends the row of the step, where the job keeps a trail.
  void append_fingerprints(std::vector<std::uint64_t>& rows);
  /// Moves the weights along the mean gradient.
  void update(Ops& ops, std::int64_t global_step);

 private:
  float* begin_of(int stage, AlignedBuffer<float>& arena) const;

  const HeldLayout& held_;
  AlignedBuffer<float> weights_, gradient_, grain_gradient_;
  WeightUpdate update_;
  OptimizerBuffers buffers_;
  std::optional<GradientUnits> units_;
  std::optional<GradientReducer> reducer_;
  std::optional<HostFingerprints> fingerprints_;
};

}  // namespace lockstep
