// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: runs the layers over the memory that plan_tensors laid out.
#include "common/advice.hpp"
#include "common/error.hpp"
#include "common/memory.hpp"
#include "models/batch_layer.hpp"
#include "models/gradient_scratch.hpp"
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

/// What went into a pass, and how far it has come.
struct Execution::State {
  State(const Network& network, Ops& its_ops, int its_max_batch)
      : ops(its_ops),
        max_batch(its_max_batch),
        parameters(network.parameters().size),
        plan(affordable_plan(network, its_max_batch)),
        memory(plan.bytes) {
    for (const auto& layer : network.layers()) layers.push_back(layer.get());
  }

  float* at(std::size_t offset) { return reinterpret_cast<float*>(memory.data() + offset); }
  float* logits() { return at(plan.layers.back().y); }

  LayerTensors forward_tensors(std::size_t i);
  LayerTensors backward_tensors(std::size_t i, float* gradients);
  void begin(const TrainingGrain& its_grain, bool training);
  bool forward_to_cut(std::int64_t* words);
  bool backward_to_cut(const BackwardTarget& target, std::int64_t* words);
  void backward_layer(std::size_t i, const BackwardTarget& target);
  /// The gradient of the output of layer i becomes that of all who read it.
  void join_branches(std::size_t i);
  /// The layer at hand needs sums that are not there yet.
  bool stops_at(std::size_t i);

  Ops& ops;
  int max_batch;
  std::size_t parameters;  ///< elements
  TensorPlan plan;
  AlignedBuffer<std::byte> memory;
  std::vector<const Layer*> layers;
  TrainingGrain grain;
  LayerPass pass{ops, 0, 0, false, {}};
  GradientScratch scratch;
  std::size_t next = 0;      ///< of forward: the layer to run; of backward: the one behind it
  bool terms_added = false;  ///< of that layer, if it is a cut
  bool may_go_back = false;  ///< a whole forward pass in training is behind, and no backward pass
  float* dlogits = nullptr;
};

LayerTensors Execution::State::forward_tensors(std::size_t i) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors;
  tensors.weights = grain.weights + layers[i]->parameter_offset();
  tensors.kept = grain.weights + parameters + layers[i]->kept_offset();
  tensors.x = at(offsets.x);
  tensors.y = at(offsets.y);
  if (offsets.branch != TensorPlan::kNone) tensors.branch = at(offsets.branch);
  tensors.saved = reinterpret_cast<std::uint8_t*>(memory.data() + offsets.saved);
  if (grain.statistics != nullptr) tensors.statistics = grain.statistics->of(i);
  return tensors;
}

LayerTensors Execution::State::backward_tensors(std::size_t i, float* gradients) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  LayerTensors tensors = forward_tensors(i);
  // In-place layers at the end of the network pass the caller's gradient through.
  const bool in_place = offsets.x == offsets.y;
  tensors.dy = offsets.dy == TensorPlan::kNone ? dlogits : at(offsets.dy);
  tensors.dx = in_place ? const_cast<float*>(tensors.dy) : at(offsets.dx);
  tensors.gradients = gradients + layers[i]->parameter_offset();
  if (offsets.dbranch != TensorPlan::kNone) tensors.dbranch = at(offsets.dbranch);
  tensors.adds_to_dbranch = offsets.adds_to_dbranch;
  return tensors;
}

void Execution::State::join_branches(std::size_t i) {
  const TensorPlan::LayerOffsets& offsets = plan.layers[i];
  if (offsets.from_branches == TensorPlan::kNone) return;
  const std::size_t size = std::size_t{1} * layers[i]->output().features() * pass.batch;
  ops.add(size, at(offsets.dy), at(offsets.from_branches), at(offsets.dy));
}

void Execution::State::begin(const TrainingGrain& its_grain, bool training) {
  grain = its_grain;
  LOCKSTEP_CHECK(grain.batch > 0 && grain.batch <= max_batch && grain.batch % ops.batch_multiple() == 0);
  pass.batch = grain.batch;
  pass.samples = grain.samples;
  pass.training = training;
  pass.grain = max_batch;
  pass.key = grain.key;
  next = 0;
  terms_added = may_go_back = false;
}

bool Execution::State::stops_at(std::size_t i) {
  if (layers[i]->over_batch() == nullptr || !pass.training) return false;
  terms_added = !terms_added;
  return terms_added;
}

bool Execution::State::forward_to_cut(std::int64_t* words) {
  for (; next < layers.size(); ++next) {
    if (stops_at(next)) {
      LOCKSTEP_CHECK(grain.statistics != nullptr && words != nullptr);
      layers[next]->over_batch()->add_forward_sums(pass, forward_tensors(next), words);
      return true;
    }
    layers[next]->forward(pass, forward_tensors(next));
  }
  may_go_back = pass.training;
  return false;
}

bool Execution::State::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  for (; next > plan.first_trained; --next) {
    const std::size_t i = next - 1;
    if (stops_at(i)) {
      layers[i]->over_batch()->add_backward_sums(pass, backward_tensors(i, target.gradients), words);
      return true;
    }
    backward_layer(i, target);
  }
  return false;
}

void Execution::State::backward_layer(std::size_t i, const BackwardTarget& target) {
  const Layer& layer = *layers[i];
  const LayerTensors tensors = backward_tensors(i, target.gradients);
  const GradientTerms terms = scratch.backward_weights(layer, pass, tensors);
  // Before the data gradient, so that communication has the longest time to hide in.
  if (target.on_ready && !layer.parameters().empty())
    target.on_ready(layer.parameter_offset(), layer.parameter_size(), terms);
  if (i > plan.first_trained) {
    layer.backward_data(pass, tensors);
    join_branches(i - 1);
  }
  if (target.between_layers) target.between_layers();
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

float* Execution::logits() {
  return state_->logits();
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
  state_->grain.weights = weights;
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
  state_->dlogits = dlogits;
}

bool Execution::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  return state_->backward_to_cut(target, words);
}

}  // namespace lockstep
