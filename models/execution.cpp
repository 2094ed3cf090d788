// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: the layers of a network or of a part, from cut to cut.
#include "models/execution.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_walk.hpp"

#include <algorithm>

namespace lockstep {

Execution::Execution(const Network& network, int max_batch, const NetworkPart& part)
    : walk_(std::make_unique<LayerWalk>(network, part, max_batch)) {}

Execution::Execution(Execution&&) noexcept = default;
Execution::~Execution() = default;

void Execution::record_into(Timeline* timeline) {
  walk_->record_into(timeline);
}

float* Execution::input() {
  return walk_->input();
}

float* Execution::logits() {
  return walk_->output();
}

float* Execution::forward_training(const float* weights, int batch, const PassKey& key, int samples) {
  begin_training({.weights = weights, .batch = batch, .samples = samples < 0 ? batch : samples, .key = key});
  const bool stopped = forward_to_cut(nullptr);
  LOCKSTEP_CHECK(!stopped);
  return logits();
}

float* Execution::forward_evaluation(const float* weights, int batch) {
  begin({.weights = weights, .batch = batch, .samples = batch, .key = {}}, false);
  forward_to_cut(nullptr);
  return logits();
}

void Execution::backward(const float* weights, float* gradient, float* gradients,
                         const GradientReady& on_ready, const BetweenLayers& between_layers) {
  begin_backward(gradient);
  walk_->use_weights(weights);
  backward_to_cut({gradients, on_ready, between_layers}, nullptr);
}

void Execution::begin_training(const TrainingGrain& grain) {
  begin(grain, true);
}

void Execution::begin(const TrainingGrain& grain, bool training) {
  walk_->begin(grain, training);
  next_ = 0;
  terms_added_ = may_go_back_ = false;
}

/// The layer at hand needs sums that are not there yet.
bool Execution::stops_at(std::size_t i) {
  if (walk_->layer(i).over_batch() == nullptr || !walk_->pass().training) return false;
  terms_added_ = !terms_added_;
  return terms_added_;
}

bool Execution::forward_to_cut(std::int64_t* words) {
  for (; next_ < walk_->size(); ++next_) {
    if (stops_at(next_)) {
      LOCKSTEP_CHECK(walk_->grain().statistics != nullptr && words != nullptr);
      walk_->add_forward_sums(next_, words);
      return true;
    }
    walk_->forward(next_);
  }
  may_go_back_ = walk_->pass().training;
  return false;
}

void Execution::begin_backward(float* gradient) {
  LOCKSTEP_CHECK(may_go_back_);
  may_go_back_ = false;
  walk_->begin_backward(gradient);
}

bool Execution::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  for (; next_ > walk_->first_trained(); --next_) {
    const std::size_t i = next_ - 1;
    walk_->make_again(i);
    if (stops_at(i)) {
      walk_->add_backward_sums(i, target.gradients, words);
      return true;
    }
    walk_->backward(i, target);
  }
  return false;
}

float* Execution::output_gradient() {
  return walk_->output_gradient();
}

const float* Execution::input_gradient() {
  return walk_->input_gradient();
}

ParameterRange parameters_of(const Network& network, const NetworkPart& part) {
  ParameterRange range{network.layers()[part.first]->parameter_offset(), 0};
  const std::size_t last = std::min(part.last, network.layers().size());
  for (std::size_t i = part.first; i < last; ++i) range.size += network.layers()[i]->parameter_size();
  return range;
}

// The sizes that Execution will ask for, from the same plan.

std::uint64_t execution_bytes(const Network& network, int columns, const NetworkPart& part) {
  return plan_tensors(network, columns, part).bytes;
}

std::uint64_t kernel_scratch_bytes(const Network& network, int columns) {
  std::uint64_t most = 0;
  for (const auto& layer : network.layers()) {
    most = std::max(most, layer->scratch_numbers(columns));
  }
  return checked_product(most, sizeof(float));
}

}  // namespace lockstep
