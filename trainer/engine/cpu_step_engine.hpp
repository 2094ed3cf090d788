// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training steps on CPU cores: the threads of a rank share its grains.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/engine/cut_step.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/engine/weight_update.hpp"
#include "trainer/engine/worker_pool.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

class CpuStepEngine final : public StepEngine {
 public:
  CpuStepEngine(const Job& job, const JobSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return 1; }
  Evaluation evaluate(const LeaveEvaluation& leave) override;

  std::span<float> weights() override { return weights_.span(); }
  std::vector<OptimizerBufferView> optimizer_buffers() override { return buffers_.views(); }
  GradientUnits& gradient_units() override { return units_; }
  const WeightUpdate& weight_update() const override { return update_; }
  const DistributedSampler& sampler() const override { return sampler_; }
  void probe_next_sums(const GradientReducer::SeeSums& see) override { probe_ = see; }
  StepTimes times() const override;
  void reset_times() override;

 private:
  /// Adds what the step came to to the series: a step taken, or a failure.
  void step(const StepPosition& position, bool stop_requested, StepSeries& series);
  /// Moves the weights by the step's sums.
  void take(const StepPosition& position, StepSeries& series);
  void update(const StepScalars& scalars, std::span<const UpdateTensor> tensors);
  void update_seen(const StepScalars& scalars, HostFingerprints::Row row);
  /// Computes the step's sums over all ranks, again where the units must change.
  StepTrial::Outcome reduce(const StepPosition& position, bool stop_requested, StepTrial& trial);
  void compute(const StepPosition& position, const std::vector<Grain>& grains);
  void compute_grain(ThreadContext& thread, const StepPosition& position, const Grain& grain);
  void compute_between_cuts(const StepPosition& position, const std::vector<Grain>& grains,
                            bool stop_requested);
  /// Loads its samples and begins its forward pass.
  void begin_grain(const GrainInWork& work, const StepPosition& position, BatchStatistics* statistics);
  void add_loss(const GrainInWork& work);
  /// The samples at the same place in the next step's batch.
  void prefetch_next(const StepPosition& position, const Grain& grain);

  const Network& network_;
  const Dataset& test_;
  Communicator& comm_;
  int grain_;
  std::uint64_t seed_;
  DistributedSampler sampler_;
  BatchLoader loader_;
  WorkerPool pool_;
  std::vector<ThreadContext> threads_;
  AlignedBuffer<float> weights_, gradient_;  ///< arena order
  WeightUpdate update_;
  OptimizerBuffers buffers_;
  Determinism determinism_;
  GradientUnits units_;
  GradientReducer reducer_;
  CutStep cut_step_;
  std::optional<HostFingerprints> fingerprints_;  ///< for the trail
  GradientReducer::SeeSums probe_;                ///< of the next step's sums
  StepTimes times_;
  double under_way_before_ = 0;  ///< of the reducer, when the times were reset
  std::vector<double> until_left_before_;
};

}  // namespace lockstep
