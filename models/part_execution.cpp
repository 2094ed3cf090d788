// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// PartExecution: the layers of the part over the memory that plan_tensors laid out for it.
#include "models/part_execution.hpp"

#include "common/advice.hpp"
#include "common/aligned_buffer.hpp"
#include "common/error.hpp"
#include "common/memory.hpp"
#include "models/gradient_scratch.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

TensorPlan affordable_plan(const Network& network, const NetworkPart& part, int columns) {
  TensorPlan plan = plan_tensors(network, columns, part);
  require_memory(
      plan.bytes, fmt::format("a part of model {}, {} samples at a time,", network.name(), columns),
      advice("use fewer ranks on this machine, more stages, a smaller {grain}, or a smaller model"));
  return plan;
}

}  // namespace

struct PartExecution::State {
  State(const Network& network, const NetworkPart& its_part, Ops& its_ops, int its_max_batch)
      : part(its_part),
        ops(its_ops),
        max_batch(its_max_batch),
        plan(affordable_plan(network, its_part, its_max_batch)),
        memory(plan.bytes),
        parameters(parameters_of(network, its_part)) {
    const std::size_t last = std::min(part.last, network.layers().size());
    for (std::size_t i = part.first; i < last; ++i) layers.push_back(network.layers()[i].get());
  }

  float* at(std::size_t offset) { return reinterpret_cast<float*>(memory.data() + offset); }
  float* output() { return at(plan.layers.back().y); }
  float* output_gradient() {
    return plan.output_gradient == TensorPlan::kNone ? output() : at(plan.output_gradient);
  }
  std::size_t offset_of(std::size_t i) const { return layers[i]->parameter_offset() - parameters.offset; }
  LayerPass pass(bool training) {
    return {
        .ops = ops, .batch = batch, .samples = batch, .training = training, .key = key, .grain = max_batch};
  }

  LayerTensors forward_tensors(std::size_t i, const float* weights);
  LayerTensors backward_tensors(std::size_t i, const float* weights, float* gradients);
  float* forward(const float* weights, bool training);
  /// The gradient of the output of layer i becomes that of all who read it.
  void join_branches(std::size_t i);

  NetworkPart part;
  Ops& ops;
  int max_batch;
  TensorPlan plan;
  AlignedBuffer<std::byte> memory;
  ParameterRange parameters;
  std::vector<const Layer*> layers;
  int batch = 0;
  PassKey key;
  GradientScratch scratch;
  bool may_go_back = false;
};

LayerTensors PartExecution::State::forward_tensors(std::size_t i, const float* weights) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors;
  tensors.weights = layers[i]->parameters().empty() ? nullptr : weights + offset_of(i);
  tensors.x = at(offsets.x);
  tensors.y = at(offsets.y);
  if (offsets.branch != TensorPlan::kNone) tensors.branch = at(offsets.branch);
  tensors.saved = reinterpret_cast<std::uint8_t*>(memory.data() + offsets.saved);
  return tensors;
}

LayerTensors PartExecution::State::backward_tensors(std::size_t i, const float* weights, float* gradients) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors = forward_tensors(i, weights);
  float* dy = offsets.dy == TensorPlan::kNone ? output_gradient() : at(offsets.dy);
  tensors.dy = dy;
  if (offsets.x == offsets.y) {
    tensors.dx = dy;
  } else if (offsets.dx != TensorPlan::kNone) {
    tensors.dx = at(offsets.dx);
  }
  if (!layers[i]->parameters().empty()) tensors.gradients = gradients + offset_of(i);
  if (offsets.dbranch != TensorPlan::kNone) tensors.dbranch = at(offsets.dbranch);
  tensors.adds_to_dbranch = offsets.adds_to_dbranch;
  return tensors;
}

void PartExecution::State::join_branches(std::size_t i) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  if (offsets.from_branches == TensorPlan::kNone) return;
  const std::size_t size = std::size_t{1} * layers[i]->output().features() * batch;
  ops.add(size, at(offsets.dy), at(offsets.from_branches), at(offsets.dy));
}

float* PartExecution::State::forward(const float* weights, bool training) {
  LOCKSTEP_CHECK(batch > 0 && batch <= max_batch && batch % ops.batch_multiple() == 0);
  may_go_back = training;
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers[i]->forward(pass(training), forward_tensors(i, weights));
  return output();
}

PartExecution::PartExecution(const Network& network, const NetworkPart& part, Ops& ops, int max_batch) {
  LOCKSTEP_CHECK(max_batch > 0 && max_batch % ops.batch_multiple() == 0);
  state_ = std::make_unique<State>(network, part, ops, max_batch);
}

PartExecution::PartExecution(PartExecution&&) noexcept = default;
PartExecution::~PartExecution() = default;

float* PartExecution::input() {
  return state_->at(state_->plan.input);
}

float* PartExecution::forward_training(const float* weights, int batch, const PassKey& key) {
  state_->batch = batch;
  state_->key = key;
  return state_->forward(weights, true);
}

float* PartExecution::forward_evaluation(const float* weights, int batch) {
  state_->batch = batch;
  state_->key = {};
  return state_->forward(weights, false);
}

float* PartExecution::output_gradient() {
  return state_->output_gradient();
}

const float* PartExecution::backward(const float* weights, float* gradients, const GradientReady& on_ready,
                                     const BetweenLayers& between_layers) {
  State& state = *state_;
  LOCKSTEP_CHECK(state.may_go_back);
  state.may_go_back = false;
  const LayerPass pass = state.pass(true);
  for (std::size_t i = state.layers.size(); i-- > state.plan.first_trained;) {
    const Layer& layer = *state.layers[i];
    const LayerTensors tensors = state.backward_tensors(i, weights, gradients);
    const GradientTerms terms = state.scratch.backward_weights(layer, pass, tensors);
    if (on_ready && !layer.parameters().empty()) on_ready(state.offset_of(i), layer.parameter_size(), terms);
    const bool is_last = i == state.plan.first_trained;
    if (!is_last || state.part.gives_input_gradient) layer.backward_data(pass, tensors);
    if (!is_last) state.join_branches(i - 1);
    if (between_layers) between_layers();
  }
  return state.part.gives_input_gradient ? state.at(state.plan.input_gradient) : nullptr;
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
