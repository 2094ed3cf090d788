// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Execution: which tensors a layer gets, and its way forward and back.
#include "models/batch_layer.hpp"
#include "models/execution.hpp"

#include <algorithm>

namespace lockstep {

LayerTensors Execution::tensors_at(const Offsets& all, std::size_t i) {
  const TensorPlan::LayerOffsets& offsets = all[i];
  LayerTensors tensors;
  tensors.weights = grain_.weights + offset_of(i);
  if (!layer(i).kept().empty()) tensors.kept = grain_.weights + parameters_.size + layer(i).kept_offset();
  tensors.x = at(offsets.x);
  tensors.y = at(offsets.y);
  tensors.read = read_[i];
  if (offsets.branch != TensorPlan::kNone) tensors.branch = at(offsets.branch);
  tensors.saved = reinterpret_cast<std::uint8_t*>(memory_.data() + offsets.saved);
  if (grain_.statistics != nullptr) tensors.statistics = grain_.statistics->of(i);
  tensors.maxima_of_x = maxima_.of_input(i);
  tensors.maxima_of_y = maxima_.of_output(i);
  return tensors;
}

float* Execution::gradient_at(std::size_t i) {
  const std::size_t dy = plan_.back[i].dy;
  return dy == TensorPlan::kNone ? gradient_of_output_ : at(dy);
}

LayerTensors Execution::backward_tensors(std::size_t i, float* gradients) {
  const TensorPlan::LayerOffsets& offsets = plan_.back[i];
  LayerTensors tensors = tensors_at(plan_.back, i);
  float* const dy = gradient_at(i);
  tensors.dy = dy;
  if (offsets.in_place) {
    tensors.dx = dy;  // also at the end of the network, where it is the caller's
  } else if (offsets.dx != TensorPlan::kNone) {
    tensors.dx = at(offsets.dx);
  }
  tensors.gradients = gradients + offset_of(i);
  if (offsets.dbranch != TensorPlan::kNone) tensors.dbranch = at(offsets.dbranch);
  tensors.adds_to_dbranch = offsets.adds_to_dbranch;
  tensors.maxima_of_dy = maxima_.of_output_gradient(i);
  tensors.maxima_of_dx = maxima_.of_input_gradient(i);
  return tensors;
}

bool Execution::runs_with_another(std::size_t i) const {
  const LayerRun* const run = run_at(i);
  return run != nullptr ? i > run->layers.first : norms_[i] != kNone && norms_[i] != i;
}

void Execution::forward(const Offsets& offsets, std::size_t i) {
  const LayerRun* const run = run_at(i);
  if (runs_with_another(i)) return;
  const TimeSpan span(timeline(), Work::kForward, run == nullptr ? layer(i).name() : run->name);
  if (run != nullptr) return run_forward(offsets, *run);
  layer(i).forward(pass_, norms_[i] == i ? tensors_with_steps(offsets, i) : tensors_at(offsets, i));
}

/// A step that adds has a branch; the other one is a relu, which saves signs. The last one's output is what is found.
LayerTensors Execution::tensors_with_steps(const Offsets& offsets, std::size_t i) {
  LayerTensors tensors = tensors_at(offsets, i);
  for (std::size_t step = i + 1; step < size() && norms_[step] == i; ++step) {
    const LayerTensors of_step = tensors_at(offsets, step);
    tensors.maxima_of_y = of_step.maxima_of_y;
    if (of_step.branch != nullptr) {
      tensors.steps.added = of_step.branch;
    } else {
      tensors.steps.has_relu = true;
      tensors.steps.positive = pass_.training ? of_step.saved : nullptr;
    }
  }
  return tensors;
}

void Execution::add_backward_sums(std::size_t i, float* gradients, std::int64_t* words) {
  std::size_t last = i;
  while (last + 1 < size() && norms_[last + 1] == i) ++last;
  LayerTensors tensors = backward_tensors(i, gradients);
  tensors.steps = tensors_with_steps(plan_.back, i).steps;
  const std::size_t joined = plan_.back[last].from_branches;
  tensors.steps.added = joined == TensorPlan::kNone ? nullptr : at(joined);
  tensors.stepped_dy = gradient_at(i);
  layer(i).over_batch()->add_backward_sums(pass_, tensors, words);
  for (std::size_t step = last; step > i; --step)
    if (layer(step).branch()) layer(step).backward_data(pass_, backward_tensors(step, gradients));
}

/// Calls f() for some channels after the other: pass_.channels.
template <typename F>
void Execution::for_each_channels(const LayerRun& run, const F& f) {
  const int channels = layer(run.layers.first).output().channels;
  const int at_once = cpu::channels_at_once(pass_.batch);
  for (int first = 0; first < channels; first += at_once) {
    pass_.channels = {first, std::min(at_once, channels - first)};
    f();
  }
  pass_.channels = {};
}

LayerTensors Execution::of_channels(const LayerRun& run, std::size_t i, const LayerTensors& whole) const {
  const Layer& layer = *layers_[i];
  const bool writes_first = i < run.reader;
  const bool reads_first = run.layers.first < i && i <= run.reader;
  const bool reuses = !(run.is_kept && pass_.training) && run.reader <= run.layers.last;
  const bool reuses_gradient = !run.has_whole_gradient && run.reader <= run.layers.last;
  const auto first = static_cast<std::size_t>(pass_.channels.first),
             batch = static_cast<std::size_t>(pass_.batch);
  const auto before = [&](const ImageShape& shape) { return first * shape.height * shape.width * batch; };
  LayerTensors part = whole;
  if (!(writes_first && reuses)) part.y += before(layer.output());
  if (part.dy != nullptr && !(writes_first && reuses_gradient)) part.dy += before(layer.output());
  if (i == run.layers.first) return part;
  if (!(reads_first && reuses)) part.x += before(layer.input());
  if (part.dx != nullptr && !(reads_first && reuses_gradient)) part.dx += before(layer.input());
  part.saved += first * layer.saved_bytes(pass_.batch) / layer.output().channels;
  return part;
}

void Execution::run_forward(const Offsets& offsets, const LayerRun& run) {
  for_each_channels(run, [&] {
    for (std::size_t i = run.layers.first; i <= run.layers.last; ++i)
      layer(i).forward(pass_, of_channels(run, i, tensors_at(offsets, i)));
  });
}

void Execution::run_backward(const LayerRun& run, float* gradients) {
  const std::size_t weighted = run.layers.first;
  const LayerTensors terms = with_terms(weighted, backward_tensors(weighted, gradients));
  for_each_channels(run, [&] {
    for (std::size_t i = run.layers.last; i > weighted; --i)
      layer(i).backward_data(pass_, of_channels(run, i, backward_tensors(i, gradients)));
    layer(weighted).backward_weights(pass_, of_channels(run, weighted, terms));
  });
}

void Execution::backward(std::size_t i, const BackwardTarget& target) {
  const LayerRun* const run = run_at(i);
  if (run != nullptr && i == run->layers.last) {
    const TimeSpan span(timeline(), Work::kBackward, run->name);
    run_backward(*run, target.gradients);
  }
  if (!runs_with_another(i)) finish_backward(i, target);
  if (target.between_layers) target.between_layers();
}

/// Finishes a separate layer, or the first one of a run.
void Execution::finish_backward(std::size_t i, const BackwardTarget& target) {
  const LayerRun* const run = run_at(i);
  const TimeSpan span(timeline(), Work::kBackward, run == nullptr ? layer(i).name() : run->name);
  const LayerTensors tensors = backward_tensors(i, target.gradients);
  if (run == nullptr) layer(i).backward_weights(pass_, with_terms(i, tensors));
  const GradientTerms terms = sum_terms(i, tensors);
  // Before the data gradient, so that communication has the longest time to hide in.
  if (target.on_ready && !layer(i).parameters().empty()) {
    const TimeSpan sums(timeline(), Work::kSums, layer(i).name());
    target.on_ready(offset_of(i), layer(i).parameter_size(), terms);
  }
  const bool is_last = i == plan_.first_trained;
  if (!is_last || gives_input_gradient_) layer(i).backward_data(pass_, tensors);
  if (!is_last && norms_[i - 1] == kNone) join_branches(i - 1);
}

void Execution::join_branches(std::size_t i) {
  const TensorPlan::LayerOffsets& offsets = plan_.layers[i];
  if (offsets.from_branches == TensorPlan::kNone) return;
  cpu::add(numbers_of(layer(i).output(), pass_.batch), at(offsets.dy), at(offsets.from_branches),
           at(offsets.dy));
  if (cpu::ColumnMaxima* maxima = maxima_.of_output_gradient(i)) maxima->are_found = false;
}

// A layer's terms, where there are several, and their sum.

LayerTensors Execution::with_terms(std::size_t i, const LayerTensors& tensors) {
  const auto count = static_cast<std::size_t>(layer(i).gradient_terms(pass_.grain));
  if (count == 1) return tensors;
  const std::size_t size = layer(i).parameter_size();
  if (terms_.size() < size * count) terms_ = AlignedBuffer<float>(size * count);
  LayerTensors of_terms = tensors;
  of_terms.gradients = terms_.data();
  of_terms.term_stride = size;
  return of_terms;
}

GradientTerms Execution::sum_terms(std::size_t i, const LayerTensors& tensors) const {
  const int count = layer(i).gradient_terms(pass_.grain);
  if (count == 1) return {.first = tensors.gradients};
  const std::size_t size = layer(i).parameter_size();
  const GradientTerms terms{.first = terms_.data(), .count = count, .stride = size};
  std::copy_n(terms.first, size, tensors.gradients);
  for (int t = 1; t < count; ++t) cpu::add(size, tensors.gradients, terms.term(t), tensors.gradients);
  return terms;
}

}  // namespace lockstep
