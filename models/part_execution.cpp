// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// PartExecution: the layers of the part, one after the other.
#include "models/part_execution.hpp"

#include "common/error.hpp"
#include "models/layer_walk.hpp"

#include <algorithm>

namespace lockstep {

struct PartExecution::State {
  State(const Network& network, const NetworkPart& part, Ops& ops, int max_batch)
      : walk(network, part, ops, max_batch) {}

  float* forward(const TrainingGrain& grain, bool training);

  LayerWalk walk;
  bool may_go_back = false;
};

float* PartExecution::State::forward(const TrainingGrain& grain, bool training) {
  walk.begin(grain, training);
  may_go_back = training;
  for (std::size_t i = 0; i < walk.size(); ++i) walk.forward(i);
  return walk.output();
}

PartExecution::PartExecution(const Network& network, const NetworkPart& part, Ops& ops, int max_batch)
    : state_(std::make_unique<State>(network, part, ops, max_batch)) {}

PartExecution::PartExecution(PartExecution&&) noexcept = default;
PartExecution::~PartExecution() = default;

float* PartExecution::input() {
  return state_->walk.input();
}

float* PartExecution::forward_training(const float* weights, int batch, const PassKey& key) {
  return state_->forward({.weights = weights, .batch = batch, .samples = batch, .key = key}, true);
}

float* PartExecution::forward_evaluation(const float* weights, int batch) {
  return state_->forward({.weights = weights, .batch = batch, .samples = batch, .key = {}}, false);
}

float* PartExecution::output_gradient() {
  return state_->walk.output_gradient();
}

const float* PartExecution::backward(const float* weights, float* gradients, const GradientReady& on_ready,
                                     const BetweenLayers& between_layers) {
  LOCKSTEP_CHECK(state_->may_go_back);
  state_->may_go_back = false;
  LayerWalk& walk = state_->walk;
  walk.use_weights(weights);
  walk.begin_backward(walk.output_gradient());
  for (std::size_t i = walk.size(); i-- > walk.first_trained();)
    walk.backward(i, {gradients, on_ready, between_layers});
  return walk.input_gradient();
}

std::size_t part_execution_bytes(const Network& network, const NetworkPart& part, int columns) {
  return plan_tensors(network, columns, part).bytes;
}

ParameterRange parameters_of(const Network& network, const NetworkPart& part) {
  ParameterRange range{network.layers()[part.first]->parameter_offset(), 0};
  const std::size_t last = std::min(part.last, network.layers().size());
  for (std::size_t i = part.first; i < last; ++i) range.size += network.layers()[i]->parameter_size();
  return range;
}

}  // namespace lockstep
