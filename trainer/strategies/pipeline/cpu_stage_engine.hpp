// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank on a CPU core.
#pragma once

#include "kernels/ops.hpp"
#include "models/part_execution.hpp"
#include "trainer/strategies/pipeline/rank_weights.hpp"
#include "trainer/strategies/pipeline/stage_engine.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

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
  using Slots = std::vector<PartExecution>;

  const NetworkPart& part(int stage) const { return plan_.stages[static_cast<std::size_t>(stage)].part; }
  PartExecution& slot(const StageVisit& visit);
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
  std::unique_ptr<Ops> ops_;
  int columns_;               ///< of a full grain
  std::vector<Slots> slots_;  ///< of each stage of the network; none of others'
  std::vector<std::int32_t> labels_;
  double narrow_limit_ = 0;
  StepCounters counters_;
  EvaluationSums evaluated_;
};

}  // namespace lockstep
