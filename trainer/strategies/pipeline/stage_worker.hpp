// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank at work: passes over grains, in the order of the schedule.
#pragma once

#include "data/batch.hpp"
#include "data/sampler.hpp"
#include "kernels/ops.hpp"
#include "models/part_execution.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/pipeline/rank_weights.hpp"
#include "trainer/strategies/pipeline/schedule.hpp"
#include "trainer/strategies/pipeline/stage_links.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// A micro-batch of one round of passes.
struct StageGrain {
  std::span<const std::int32_t> indices;  ///< of its samples, in the data set
  PassKey key;                            ///< in training
  int samples() const { return static_cast<int>(indices.size()); }
};

/// What the passes of one stage took.
struct StageTimes {
  double forward = 0, backward = 0;  ///< seconds, from the input being there to the output being on its way
  std::int64_t forwards = 0, backwards = 0;
};

class StageWorker {
 public:
  /// Told of the sums of each grain, on the rank of the last stage.
  using OnLoss = std::function<void(const LossSums& sums, int samples)>;

  /// Borrows all references.
  StageWorker(const Job& job, const JobSetup& setup, const StagePlan& plan, int rank, StageLinks& links,
              RankWeights& weights);

  /// Every pass that this rank has in a step over these grains, which lie in the training set. The gradients
  /// are added to the rank's weights.
  void train(std::span<const StageGrain> grains, const OnLoss& on_loss);
  /// Forward passes over grains of a set.
  void evaluate(const Dataset& data, std::span<const StageGrain> grains, const OnLoss& on_loss);

  Ops& ops() { return *ops_; }
  /// The training schedule for so many grains.
  const PipelineSchedule& schedule(int grains);
  const StageTimes& times(int stage) const { return times_[static_cast<std::size_t>(stage)]; }
  /// Seconds of passes, of all stages of this rank.
  double busy() const;

 private:
  using Slots = std::vector<PartExecution>;

  const PipelineSchedule& schedule(int grains, PipelineOrder order);
  void make_room(const PipelineSchedule& schedule);
  PartExecution& slot(int stage, int grain);
  void forward(int stage, int number, const StageGrain& grain, const Dataset& data, bool training,
               const OnLoss& on_loss);
  void backward(int stage, int number, const StageGrain& grain);
  LossSums loss_of(float* logits, const StageGrain& grain, bool training);
  int columns_for(int samples) const;
  std::size_t input_size(int stage, int columns) const;
  std::size_t output_size(int stage, int columns) const;

  const Network& network_;
  const Dataset& training_set_;
  const StagePlan& plan_;
  int rank_;
  StageLinks& links_;
  RankWeights& weights_;
  PipelineOrder order_;
  std::unique_ptr<Ops> ops_;
  int columns_;               ///< of a full grain
  std::vector<Slots> slots_;  ///< of each stage of the network; none of others'
  std::map<std::pair<PipelineOrder, int>, PipelineSchedule> schedules_;  ///< by grains
  std::vector<std::int32_t> labels_;
  std::vector<StageTimes> times_;  ///< of each stage of the network
};

}  // namespace lockstep
