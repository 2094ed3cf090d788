// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: all layers of a network, from cut to cut.
#include "models/execution.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_walk.hpp"
#include "models/tensor_plan.hpp"

#include <algorithm>

namespace lockstep {

/// How far a pass has come.
struct Execution::State {
  State(const Network& network, Ops& ops, int max_batch) : walk(network, {}, ops, max_batch) {}

  void begin(const TrainingGrain& grain, bool training);
  bool forward_to_cut(std::int64_t* words);
  bool backward_to_cut(const BackwardTarget& target, std::int64_t* words);
  /// The layer at hand needs sums that are not there yet.
  bool stops_at(std::size_t i);

  LayerWalk walk;
  std::size_t next = 0;      ///< of forward: the layer to run; of backward: the one behind it
  bool terms_added = false;  ///< of that layer, if it is a cut
  bool may_go_back = false;  ///< a whole forward pass in training is behind, and no backward pass
};

void Execution::State::begin(const TrainingGrain& grain, bool training) {
  walk.begin(grain, training);
  next = 0;
  terms_added = may_go_back = false;
}

bool Execution::State::stops_at(std::size_t i) {
  if (walk.layer(i).over_batch() == nullptr || !walk.pass().training) return false;
  terms_added = !terms_added;
  return terms_added;
}

bool Execution::State::forward_to_cut(std::int64_t* words) {
  for (; next < walk.size(); ++next) {
    if (stops_at(next)) {
      LOCKSTEP_CHECK(walk.grain().statistics != nullptr && words != nullptr);
      walk.layer(next).over_batch()->add_forward_sums(walk.pass(), walk.forward_tensors(next), words);
      return true;
    }
    walk.forward(next);
  }
  may_go_back = walk.pass().training;
  return false;
}

bool Execution::State::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  for (; next > walk.first_trained(); --next) {
    const std::size_t i = next - 1;
    if (stops_at(i)) {
      walk.layer(i).over_batch()->add_backward_sums(walk.pass(), walk.backward_tensors(i, target.gradients),
                                                    words);
      return true;
    }
    walk.backward(i, target);
  }
  return false;
}

Execution::Execution(const Network& network, Ops& ops, int max_batch)
    : state_(std::make_unique<State>(network, ops, max_batch)) {}

Execution::Execution(Execution&&) noexcept = default;
Execution::~Execution() = default;

float* Execution::input() {
  return state_->walk.input();
}

float* Execution::logits() {
  return state_->walk.output();
}

float* Execution::forward_training(const float* weights, int batch, const PassKey& key) {
  begin_training({.weights = weights, .batch = batch, .samples = batch, .key = key});
  const bool stopped = forward_to_cut(nullptr);
  LOCKSTEP_CHECK(!stopped);
  return logits();
}

float* Execution::forward_evaluation(const float* weights, int batch) {
  state_->begin({.weights = weights, .batch = batch, .samples = batch, .key = {}}, false);
  state_->forward_to_cut(nullptr);
  return logits();
}

void Execution::backward(const float* weights, float* dlogits, float* gradients,
                         const GradientReady& on_ready, const BetweenLayers& between_layers) {
  begin_backward(dlogits);
  state_->walk.use_weights(weights);
  backward_to_cut({gradients, on_ready, between_layers}, nullptr);
}

void Execution::begin_training(const TrainingGrain& grain) {
  state_->begin(grain, true);
}

bool Execution::forward_to_cut(std::int64_t* words) {
  return state_->forward_to_cut(words);
}

void Execution::begin_backward(float* dlogits) {
  LOCKSTEP_CHECK(state_->may_go_back);
  state_->may_go_back = false;
  state_->walk.begin_backward(dlogits);
}

bool Execution::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  return state_->backward_to_cut(target, words);
}

// PartExecution: the layers of the part, one after the other.

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

// The sizes that Execution will ask for, from the same plan.

std::uint64_t execution_bytes(const Network& network, int columns) {
  return plan_tensors(network, columns).bytes;
}

std::uint64_t kernel_scratch_bytes(const Network& network, int columns) {
  std::uint64_t most = 0;
  for (const auto& layer : network.layers()) {
    most = std::max(most, layer->scratch_numbers(columns));
  }
  return checked_product(most, sizeof(float));
}

}  // namespace lockstep
