// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// In which order the ranks of a pipeline run their passes: a pure function of stages and micro-batches, which
/// every rank computes alike.
#pragma once

#include "trainer/config/job.hpp"

#include <span>
#include <vector>

namespace lockstep {

/// One pass of a stage over a micro-batch, which is a grain.
struct PipelinePass {
  bool backward = false;
  int stage = 0;
  int grain = 0;  ///< counted from 0 in the rank's share of the batch
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

struct PipelineSchedule {
  std::vector<std::vector<PipelinePass>> ranks;  ///< of each rank of the pipeline, in order
  std::vector<int> in_flight;  ///< of each stage: most micro-batches between forward and backward, at least 1
};

/// @param rank_of     of each stage
/// @param goes_back   of each stage: whether it has backward passes; not so the first few, perhaps
/// Made by playing it through: a forward pass takes one unit of time and a backward pass two, and each rank
/// takes what can start first. With 1F1B, stage s of S has at most S - s micro-batches in flight, so every
/// order is one that ranks can follow without waiting in a circle.
PipelineSchedule make_schedule(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                               PipelineOrder order);

/// Seconds that the passes of a stage take.
struct StageSeconds {
  double forward = 0, backward = 0;
};

/// The share of all ranks' time without work, if messages took no time: the schedule's bubble.
double bubble_share(const PipelineSchedule& schedule, std::span<const StageSeconds> stages);

/// The same for p ranks with equal work in v stages each, and m micro-batches: (p - 1) / (v m + p - 1).
double textbook_bubble(int ranks, int stages_each, int grains);

}  // namespace lockstep
