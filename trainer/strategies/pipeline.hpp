// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `pipeline`: each rank has some layers of the network, and grains pass through them one behind the
/// other. The bits are those of one rank.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "trainer/engine/training_step.hpp"
#include "trainer/strategies/stage_engine.hpp"
#include "trainer/strategies/stage_links.hpp"
#include "trainer/strategies/stage_plan.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep {

/// A grain's gradient is rounded once and added as integers, wherever its layers ran; so stages leave no trace,
/// as ranks leave none. Whether a step may move the weights depends on all tensors, and all ranks decide it
/// alike, from numbers summed over all of them.
class Pipeline final : public ParallelStrategy {
 public:
  Pipeline(const Job& job, const JobSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return 1; }
  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override;

  TrainedState whole_state() override;
  void distribute() override;
  void collect() override;
  void exchange_weights(const std::string& average) override;
  void check_copies(std::int64_t step) override;
  std::vector<std::uint64_t> combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots) override;

  std::optional<double> gradient_norm() override;
  /// Of a step's sums, where there are replicas.
  void probe_next_step(const StepProbe& probe) override;

  const WeightUpdate& weight_update() const override { return update_; }
  const DistributedSampler& sampler() const override { return sampler_; }
  StrategyDescription describe() const override;
  StrategySummary summary() override;

 private:
  /// A rank that waits in vain in `work` says which stages are silent.
  template <typename Work>
  auto naming_silent_stages(const Work& work);
  void step(const StepPosition& position, bool stop_requested, StepSeries& series);
  StageSums compute(const StepPosition& position);
  /// All ranks leave if those of one stage do.
  void expect_equal_sums(std::int64_t differences, std::int64_t step);
  Evaluation evaluate_in_rounds(EvaluatedPart part, const LeaveEvaluation& leave);
  /// Sums over all ranks of what was counted, and of what was refused, which is refusals_ from then on.
  StepSums sum_over_all(const StageSums& own, bool stop_requested, std::int64_t step);
  std::vector<double> of_all_tensors(const std::vector<double>& own);
  int replica() const { return comm_.rank() / plan_.width; }
  enum class Way { kOut, kBack };
  void move_state(const HeldRange& range, int holder, Way way);

  const Job& job_;
  const JobSetup& setup_;
  Communicator& comm_;
  StagePlan plan_;
  int rank_;                                ///< in the pipeline
  std::unique_ptr<Communicator> replicas_;  ///< the ranks with the same stages
  DistributedSampler sampler_;
  GradientUnits units_;  ///< of the whole network
  WeightUpdate update_;  ///< of the whole network
  HeldLayout held_;
  std::unique_ptr<StageEngine> engine_;
  std::unique_ptr<StageLinks> links_;
  StageWorker worker_;
  AlignedBuffer<float> whole_weights_;  ///< rank 0's
  OptimizerBuffers whole_buffers_;      ///< rank 0's
  std::vector<TensorRefusals> refusals_;
  std::optional<SumsDifferError> sums_differ_;  ///< those of this rank's stages
  std::size_t slots_of_row_;                    ///< of the trail; 0: the job keeps none
  double wall_seconds_ = 0;                     ///< in steps, without their updates
};

}  // namespace lockstep
