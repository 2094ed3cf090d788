// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: what it allocates, and the layers of a network or of a part from cut to cut.
#include "models/execution.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "models/batch_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

ParameterRange parameters_of(const Network& network, const NetworkPart& part) {
  const Layers layers = layers_of(network, part);
  ParameterRange range{layers.front()->parameter_offset(), 0};
  for (const auto& layer : layers) range.size += layer->parameter_size();
  return range;
}

namespace {

/// The plan, if there is memory for it. A small file can describe a network of which no machine holds one sample.
TensorPlan affordable_plan(const Network& network, const NetworkPart& part, int columns) {
  TensorPlan plan = plan_tensors(network, columns, part);
  const bool whole = layers_of(network, part).size() == network.layers().size();
  require_memory(
      plan.bytes,
      fmt::format("{}model {}, {} at a time,", whole ? "" : "a part of ", network.name(),
                  counted(columns, "sample")),
      advice(whole ? "use fewer threads or ranks on this machine, a smaller {grain}, or a smaller model"
                   : "use fewer ranks on this machine, more stages, a smaller {grain}, or a smaller model"));
  return plan;
}

}  // namespace

Execution::Execution(const Network& network, int max_batch, const NetworkPart& part)
    : gives_input_gradient_(part.gives_input_gradient),
      parameters_(parameters_of(network, part)),
      plan_(affordable_plan(network, part, max_batch)),
      memory_(plan_.bytes),
      layers_(layers_of(network, part)),
      maxima_(layers_, part.first, max_batch),
      read_(parts_read(network.layers(), part.first, part.first + layers_.size())),
      runs_of_(layers_.size(), kNone),
      norms_(layers_.size(), kNone),
      pass_{.key = {}, .grain = max_batch} {
  LOCKSTEP_CHECK(max_batch > 0 && max_batch % cpu::kLanes == 0);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (layer(i).over_batch() != nullptr) norms_[i] = i;
  for (const ChannelRun& run : plan_.runs) {
    std::vector<std::size_t>& of_layers = run.has_steps ? norms_ : runs_of_;
    std::fill(of_layers.begin() + static_cast<std::ptrdiff_t>(run.first),
              of_layers.begin() + static_cast<std::ptrdiff_t>(run.last) + 1,
              run.has_steps ? run.first : runs_.size());
    if (!run.has_steps) runs_.push_back(run_of(run));
  }
}

Execution::LayerRun Execution::run_of(const ChannelRun& layers) const {
  LayerRun run{.layers = layers,
               .reader = layers.first + 1,
               .is_kept = layer(layers.first).needs_output(),
               .has_whole_gradient = layers.first != plan_.first_trained || gives_input_gradient_};
  for (; run.reader <= layers.last; ++run.reader) {
    run.is_kept = run.is_kept || layer(run.reader).needs_input();
    if (!plan_.layers[run.reader].in_place) break;
    run.is_kept = run.is_kept || layer(run.reader).needs_output();
  }
  for (std::size_t i = layers.first; i <= layers.last; ++i)
    run.name += (run.name.empty() ? "" : "+") + layer(i).name();
  return run;
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

void Execution::backward(float* gradient, float* gradients, const GradientReady& on_ready,
                         const BetweenLayers& between_layers) {
  begin_backward(gradient);
  backward_to_cut({gradients, on_ready, between_layers}, nullptr);
}

void Execution::begin(const TrainingGrain& grain, bool training) {
  LOCKSTEP_CHECK(grain.batch > 0 && grain.batch <= pass_.grain && grain.batch % cpu::kLanes == 0);
  grain_ = grain;
  pass_.batch = grain.batch;
  pass_.samples = grain.samples;
  pass_.training = training;
  pass_.key = grain.key;
  maxima_.forget_activations();
  next_ = 0;
  terms_added_ = may_go_back_ = false;
}

bool Execution::stops_at(std::size_t i) {
  if (layer(i).over_batch() == nullptr || !pass_.training) return false;
  terms_added_ = !terms_added_;
  return terms_added_;
}

bool Execution::forward_to_cut(std::int64_t* words) {
  for (; next_ < size(); ++next_) {
    if (stops_at(next_)) {
      LOCKSTEP_CHECK(grain_.statistics != nullptr && words != nullptr);
      layer(next_).over_batch()->add_forward_sums(pass_, tensors_at(plan_.layers, next_), words);
      return true;
    }
    forward(plan_.layers, next_);
  }
  may_go_back_ = pass_.training;
  return false;
}

void Execution::begin_backward(float* gradient) {
  LOCKSTEP_CHECK(may_go_back_);
  may_go_back_ = false;
  gradient_of_output_ = gradient;
  made_again_ = kNone;
  maxima_.forget_gradients();
}

bool Execution::backward_to_cut(const BackwardTarget& target, std::int64_t* words) {
  for (; next_ > plan_.first_trained; --next_) {
    const std::size_t i = next_ - 1;
    // Makes again first what it and those before it need, and was not kept.
    if (std::exchange(made_again_, i) != i)
      for (const std::size_t again : plan_.again[i]) forward(plan_.back, again);
    if (stops_at(i)) {
      add_backward_sums(i, target.gradients, words);
      return true;
    }
    backward(i, target);
  }
  return false;
}

float* Execution::output_gradient() {
  return plan_.output_gradient == TensorPlan::kNone ? logits() : at(plan_.output_gradient);
}

// The sizes that Execution will ask for, from the same plan.

std::uint64_t execution_bytes(const Network& network, int columns, const NetworkPart& part) {
  return plan_tensors(network, columns, part).bytes;
}

std::uint64_t kernel_scratch_bytes(const Network& network, int columns) {
  std::uint64_t most = 0;
  for (const auto& layer : network.layers()) most = std::max(most, layer->scratch_numbers(columns));
  return checked_product(most, sizeof(float));
}

}  // namespace lockstep
