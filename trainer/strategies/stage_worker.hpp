// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank at work: passes over grains, in the order of the schedule.
#pragma once

#include "trainer/strategies/pipeline_schedule.hpp"
#include "trainer/strategies/stage_engine.hpp"
#include "trainer/strategies/stage_links.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace lockstep {

/// What the passes of one stage took.
struct StageTimes {
  double forward = 0, backward = 0;  ///< seconds, from the input being there to the output being on its way
  std::int64_t forwards = 0, backwards = 0;
};

class StageWorker {
 public:
  /// Borrows all references.
  StageWorker(const Job& job, const StagePlan& plan, int rank, StageLinks& links, StageEngine& engine);

  /// Every pass that this rank has in a step over these grains, which lie in the training set.
  void train(std::span<const StageGrain> grains);
  /// Forward passes over grains of the test set.
  void evaluate(std::span<const StageGrain> grains);

  /// The training schedule for so many grains.
  const PipelineSchedule& schedule(int grains) { return schedule(grains, order_); }
  const StageTimes& times(int stage) const { return times_[static_cast<std::size_t>(stage)]; }
  /// Seconds of passes, of all stages of this rank.
  double busy() const;

 private:
  const PipelineSchedule& schedule(int grains, PipelineOrder order);
  void run(std::span<const StageGrain> grains, PipelineOrder order);
  void forward(const StageVisit& visit);
  void backward(const StageVisit& visit);

  const StagePlan& plan_;
  int rank_;
  StageLinks& links_;
  StageEngine& engine_;
  PipelineOrder order_;
  std::map<std::pair<PipelineOrder, int>, PipelineSchedule> schedules_;  ///< by grains
  std::vector<StageTimes> times_;                                        ///< of each stage of the network
};

}  // namespace lockstep
