// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cuts a network into stages, and says which rank runs which.
#pragma once

#include "common/buffers.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"
#include "models/tensor_uses.hpp"
#include "trainer/parallel/options.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct PipelineStage {
  NetworkPart part;
  int rank = 0;          ///< within its pipeline
  double work = 0;       ///< share of a training step's operations, in [0, 1]
  std::string layers;    ///< for people: "conv1 to relu1"
  ParameterRange arena;  ///< its parameters

  /// Its backward pass has something to do.
  bool goes_back() const { return part.gives_input_gradient || arena.size > 0; }
};

/// Stages in the order of the network. Ranks 0 to width - 1 of a job are one pipeline, the next `width` ranks a
/// replica of it, and so on.
struct StagePlan {
  std::vector<PipelineStage> stages;
  int width = 1;     ///< ranks of a pipeline
  int replicas = 1;  ///< pipelines

  int count() const { return static_cast<int>(stages.size()); }
  int last() const { return count() - 1; }
  int rank_of(int stage) const { return at(stages, stage).rank; }
  std::vector<int> ranks() const;
  /// The stages of a rank of a pipeline, in order; at least one.
  std::vector<int> stages_of(int rank) const;
  /// "stage 1 (conv2 to relu2)"
  std::string describe(int stage) const;
};

/// As parallel.stages and parallel.placement say, for `world` ranks. Without a placement: a stage for each rank
/// where that comes out, otherwise the stages are dealt to the ranks in turn.
/// @throws OptionError  with the place of the key: stages that do not cover the network in order, unknown or
///                      too few layers, a cut through a residual connection, ranks that do not come out
StagePlan plan_stages(const PipelineOptions& options, const Network& network, int world);

// Cuts a network into stages of about equal work.

/// Operations of each layer to train on one sample; those without weights count their numbers once per
/// direction.
std::vector<double> layer_work(const Network& network);

/// A residual connection from a layer before a cut to one after it.
struct ResidualConnection {
  std::string from, to;
};
/// @param layer  the first one after the cut
std::optional<ResidualConnection> connection_across(const Network& network, std::size_t layer);

/// How many stages there can be: no connection is cut.
std::size_t most_stages(const Network& network);

/// The first layer of each stage. It chooses the cut whose largest stage is smallest, and among those the one whose
/// stages are most alike. Nothing if there are fewer places to cut.
std::optional<std::vector<std::size_t>> balance_stages(const Network& network, std::size_t count);

// Order in which the ranks of a pipeline run their passes. It is a pure function of stages and micro-batches, which
// every rank computes alike.

/// One pass of a stage over a micro-batch, which is a grain.
struct PipelinePass {
  bool backward = false;
  int stage = 0;
  int grain = 0;  ///< counted from 0 in the rank's share of the batch
};

struct PipelineSchedule {
  std::vector<std::vector<PipelinePass>> ranks;  ///< by rank of the pipeline, in order
  std::vector<int> in_flight;  ///< by stage: most micro-batches between forward and backward, at least 1
};

/// @param rank_of     of each stage
/// @param goes_back   of each stage: whether it has backward passes; not so the first few, perhaps, in evaluation none
/// Made by playing it through: a forward pass takes one unit of time and a backward pass two, and each rank
/// takes what can start first. With 1F1B, stage s of S has at most S - s micro-batches in flight, so every
/// order is one that ranks can follow without waiting in a circle.
PipelineSchedule make_schedule(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                               PipelineOrder order);

}  // namespace lockstep
