// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank at work: passes over grains, in the order of the schedule.
#pragma once

#include "common/timeline.hpp"
#include "trainer/parallel/stage_engine.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/training/step_observer.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Passes of one stage in one direction.
struct PassTimes {
  double seconds = 0;  ///< from the input being there to the output being on its way
  std::int64_t passes = 0;
};
using StageTimes = std::array<PassTimes, 2>;  ///< forward, backward

/// Messages between this rank's stages and those of other ranks in a step. By StageLinks::tag_of(), they are
/// fingerprints of all micro-batches, added up. What arrived on a link at one rank is what the other one sent.
struct StageMessages {
  std::vector<std::uint64_t> sent, arrived;
};

class StageWorker {
 public:
  /// Borrows all references.
  StageWorker(PipelineOrder order, const StagePlan& plan, int rank, StageLinks& links, StageEngine& engine,
              StepObserver& observer, Timeline* timeline);

  /// Every pass that this rank has in a step over these grains, which lie in the training set.
  void train(std::span<const StageGrain> grains) { run(grains, true); }
  /// Forward passes over grains of what the engine evaluates.
  void evaluate(std::span<const StageGrain> grains) { run(grains, false); }

  /// The schedule for so many grains.
  const PipelineSchedule& schedule(int grains, bool training = true);
  /// Messages of the last train(). Zeros where messages are not in host memory.
  const StageMessages& messages() const { return messages_; }

  const std::vector<StageTimes>& times() const { return times_; }
  /// Seconds of passes, of all stages of this rank.
  double busy() const;

 private:
  void run(std::span<const StageGrain> grains, bool training);
  void run_pass(const StageVisit& visit, bool backward);
  /// True if messages between the two have fingerprints.
  bool compares(const StageVisit& visit, int other) const;
  void send(const StageVisit& visit, int to, std::span<const float> values);
  void receive(const StageVisit& visit, int from, std::span<float> values);

  const StagePlan& plan_;
  int rank_;
  StageLinks& links_;
  StageEngine& engine_;
  StepObserver& observer_;
  PipelineOrder order_;
  std::map<std::pair<bool, int>, PipelineSchedule> schedules_;  ///< by training, and grains
  std::vector<StageTimes> times_;                               ///< for each stage of the network
  StageMessages messages_;
  Timeline* timeline_;
  std::array<std::vector<std::string>, 2> names_;  ///< "stage 1 forward", and backward
};

}  // namespace lockstep
