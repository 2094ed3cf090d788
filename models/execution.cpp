// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: runs the layers over the memory that plan_tensors laid out.
#include "common/advice.hpp"
#include "common/error.hpp"
#include "common/memory.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

/// The plan, if there is memory for it: a small file can describe a network of which no machine holds one
/// sample.
TensorPlan affordable_plan(const Network& network, int columns) {
  TensorPlan plan = plan_tensors(network, columns);
  require_memory(plan.bytes, fmt::format("model {}, {} samples at a time,", network.name(), columns),
                 advice("use fewer threads or ranks on this machine, a smaller {grain}, or a smaller model"));
  return plan;
}

}  // namespace

struct Execution::State {
  State(const Network& network, Ops& its_ops, int its_max_batch)
      : ops(its_ops),
        max_batch(its_max_batch),
        plan(affordable_plan(network, its_max_batch)),
        memory(plan.bytes) {
    for (const auto& layer : network.layers()) layers.push_back(layer.get());
  }

  float* at(std::size_t offset) { return reinterpret_cast<float*>(memory.data() + offset); }

  LayerTensors forward_tensors(std::size_t i, const float* weights);
  LayerTensors backward_tensors(std::size_t i, const float* weights, float* dlogits, float* gradients);
  float* forward(const float* weights, const LayerPass& pass);
  /// The gradient of the output of layer i becomes that of all who read it.
  void join_branches(std::size_t i, int batch);

  Ops& ops;
  int max_batch;
  TensorPlan plan;
  AlignedBuffer<std::byte> memory;
  std::vector<const Layer*> layers;
  int trained_batch = 0;  ///< of the forward_training that backward may follow; 0: there is none
  PassKey key;
};

LayerTensors Execution::State::forward_tensors(std::size_t i, const float* weights) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors;
  tensors.weights = weights + layers[i]->parameter_offset();
  tensors.x = at(offsets.x);
  tensors.y = at(offsets.y);
  if (offsets.branch != TensorPlan::kNone) tensors.branch = at(offsets.branch);
  tensors.saved = reinterpret_cast<std::uint8_t*>(memory.data() + offsets.saved);
  return tensors;
}

LayerTensors Execution::State::backward_tensors(std::size_t i, const float* weights, float* dlogits,
                                                float* gradients) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors = forward_tensors(i, weights);
  // In-place layers at the end of the network pass the caller's gradient through.
  const bool in_place = offsets.x == offsets.y;
  tensors.dy = offsets.dy == TensorPlan::kNone ? dlogits : at(offsets.dy);
  tensors.dx = in_place ? const_cast<float*>(tensors.dy) : at(offsets.dx);
  tensors.gradients = gradients + layers[i]->parameter_offset();
  if (offsets.dbranch != TensorPlan::kNone) tensors.dbranch = at(offsets.dbranch);
  tensors.adds_to_dbranch = offsets.adds_to_dbranch;
  return tensors;
}

void Execution::State::join_branches(std::size_t i, int batch) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  if (offsets.from_branches == TensorPlan::kNone) return;
  const std::size_t size = std::size_t{1} * layers[i]->output().features() * batch;
  ops.add(size, at(offsets.dy), at(offsets.from_branches), at(offsets.dy));
}

float* Execution::State::forward(const float* weights, const LayerPass& pass) {
  LOCKSTEP_CHECK(pass.batch > 0 && pass.batch <= max_batch && pass.batch % ops.batch_multiple() == 0);
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->forward(pass, forward_tensors(i, weights));
  return at(plan.layers.back().y);
}

Execution::Execution(const Network& network, Ops& ops, int max_batch) {
  LOCKSTEP_CHECK(max_batch > 0 && max_batch % ops.batch_multiple() == 0);
  state_ = std::make_unique<State>(network, ops, max_batch);
}

Execution::Execution(Execution&&) noexcept = default;
Execution::~Execution() = default;

float* Execution::input() {
  return state_->at(state_->plan.input);
}

float* Execution::forward_training(const float* weights, int batch, const PassKey& key) {
  state_->trained_batch = batch;
  state_->key = key;
  return state_->forward(weights, {state_->ops, batch, true, key});
}

float* Execution::forward_evaluation(const float* weights, int batch) {
  state_->trained_batch = 0;
  return state_->forward(weights, {state_->ops, batch, false, {}});
}

void Execution::backward(const float* weights, float* dlogits, float* gradients,
                         const GradientReady& on_ready, const BetweenLayers& between_layers) {
  State& state = *state_;
  LOCKSTEP_CHECK(state.trained_batch > 0);
  const LayerPass pass{state.ops, state.trained_batch, true, state.key};
  state.trained_batch = 0;
  for (std::size_t i = state.layers.size(); i-- > state.plan.first_trained;) {
    const Layer& layer = *state.layers[i];
    const LayerTensors tensors = state.backward_tensors(i, weights, dlogits, gradients);
    layer.backward_weights(pass, tensors);
    // Before the data gradient, so that communication has the longest time to hide in.
    if (on_ready && !layer.parameters().empty()) on_ready(layer.parameter_offset(), layer.parameter_size());
    if (i > state.plan.first_trained) {
      layer.backward_data(pass, tensors);
      state.join_branches(i - 1, pass.batch);
    }
    if (between_layers) between_layers();
  }
}

}  // namespace lockstep
