// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank on a CPU core.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "common/buffers.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/execution.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/weight_update.hpp"
#include "trainer/strategies/stage_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

// The weights that a rank of a pipeline on CPUs holds, those of its stages; what its optimiser remembers of them;
// and their gradients, summed over the replicas.

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
  void add(int stage, std::size_t offset, std::size_t size, const GradientTerms& terms);
  /// Once for each grain of this rank.
  void count_grain(int samples);
  void poll();
  /// Every replica's sums are added up.
  void wait();
  /// Of each tensor held, over the replicas.
  std::span<const TensorRefusals> refusals() const;
  std::vector<double> largest_sums() const;
  /// Moves the weights along the mean gradient.
  /// @param rows  where the job keeps a trail, the step's row is appended to them
  void update(std::int64_t global_step, std::vector<std::uint64_t>& rows);

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

class CpuStageEngine final : public StageEngine {
 public:
  explicit CpuStageEngine(const StageEngineParts& parts);

  void make_room(int stage, int micro_batches) override;
  std::span<float> input(const StageVisit& visit) override;
  std::span<const float> forward(const StageVisit& visit) override;
  std::span<float> output_gradient(const StageVisit& visit) override;
  std::span<const float> backward(const StageVisit& visit) override;

  void begin_step(const StepPosition& position, const GradientUnits& units, int grains) override;
  void reduce() override { weights_.wait(); }
  StepCounters counters() override { return counters_; }
  std::vector<TensorRefusals> refusals() override;
  std::vector<double> largest_sums() override { return weights_.largest_sums(); }
  void update(const StepPosition& position, std::int64_t samples, std::vector<std::uint64_t>& rows) override;

  void begin_evaluation() override { evaluated_ = {}; }
  EvaluationSums evaluated() override { return evaluated_; }

  std::span<float> weights() override { return weights_.weights(); }
  std::vector<OptimizerBufferView> optimizer_buffers() override { return weights_.optimizer_buffers(); }

 private:
  using Slots = std::vector<Execution>;

  const NetworkPart& part(int stage) const { return plan_.stages[static_cast<std::size_t>(stage)].part; }
  Execution& slot(const StageVisit& visit);
  int columns_for(int samples) const;
  std::size_t input_size(const StageVisit& visit) const;
  std::size_t output_size(const StageVisit& visit) const;
  /// The logits become their gradient.
  void take_loss(const StageVisit& visit, float* logits);

  const Network& network_;
  const TrainTestData& data_;
  const StagePlan& plan_;
  int first_stage_;  ///< of this rank
  const Communicator& replicas_;
  RankWeights weights_;
  int columns_;               ///< of a full grain
  std::vector<Slots> slots_;  ///< of each stage of the network; none of others'
  std::vector<std::int32_t> labels_;
  double narrow_limit_ = 0;
  StepCounters counters_;
  EvaluationSums evaluated_;
};

}  // namespace lockstep
