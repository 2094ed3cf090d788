// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One walk over the layers, which remembers what backward and branches will ask of the tensor at hand.
#include "models/tensor_uses.hpp"

#include "common/error.hpp"
#include "models/layer_ops.hpp"

#include <algorithm>
#include <variant>

namespace lockstep {

std::vector<bool> layers_that_branch(Layers layers) {
  std::vector<bool> branches(layers.size());
  for (const auto& layer : layers)
    if (const auto from = layer->branch()) branches[*from] = true;
  return branches;
}

std::vector<ImagePart> parts_read(Layers layers, std::size_t first, std::size_t last) {
  const std::vector<bool> branches = layers_that_branch(layers);
  std::vector<ImagePart> parts;
  for (std::size_t i = first; i < last; ++i)
    parts.push_back({layers[i]->output().height, layers[i]->output().width});
  for (std::size_t i = last - 1; i-- > first;)
    if (!branches[i]) parts[i - first] = layers[i + 1]->reads_for(parts[i + 1 - first]);
  return parts;
}

std::vector<std::size_t> output_tensors(Layers layers) {
  const std::vector<bool> branches = layers_that_branch(layers);
  std::vector<std::size_t> tensors;
  std::size_t last = 0;
  bool is_needed = true;  // the network's input stays as it is
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    const bool in_place = layer.output_memory() == Layer::OutputMemory::kInPlace && !is_needed;
    if (layer.output_memory() != Layer::OutputMemory::kView && !in_place) {
      ++last;
      is_needed = false;
    }
    is_needed = is_needed || branches[i] || layer.needs_output();
    tensors.push_back(last);
  }
  return tensors;
}

// A run is a layer that splits its outputs, and the channelwise layers after it. Another run is one with sums over
// the batch, and the steps after it.

std::vector<ChannelRun> channel_runs(Layers layers, const std::vector<bool>& branched) {
  const auto goes_on = [&](std::size_t last) { return last + 1 < layers.size() && !branched[last]; };
  std::vector<ChannelRun> runs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::size_t last = i;
    if (layers[i]->over_batch() != nullptr) {
      if (goes_on(last) && std::holds_alternative<AddOp>(layers[last + 1]->op())) ++last;
      if (goes_on(last) && std::holds_alternative<ReluOp>(layers[last + 1]->op())) ++last;
    } else if (layers[i]->splits_outputs()) {
      while (goes_on(last) && layers[last + 1]->is_channelwise()) ++last;
    }
    if (last > i) runs.push_back({.first = i, .last = last, .has_steps = layers[i]->over_batch() != nullptr});
  }
  return runs;
}

Layers layers_of(const Network& network, const NetworkPart& part) {
  const Layers all = network.layers();
  const std::size_t last = std::min(part.last, all.size());
  LOCKSTEP_CHECK(part.first < last);
  return all.subspan(part.first, last - part.first);
}

TensorUses::TensorUses(const Network& network, int batch, const NetworkPart& part)
    : part_(part), layers_(layers_of(network, part)), batch_(batch) {
  name_tensors(output_tensors(network.layers()));
  const std::vector<bool> branched = layers_that_branch(network.layers());
  runs_ = channel_runs(layers_, {branched.begin() + static_cast<std::ptrdiff_t>(part.first), branched.end()});
  if (part.gives_input_gradient) return;
  while (first_trained_ < layer_count() && layer(first_trained_).parameters().empty()) ++first_trained_;
}

/// Counted from the part's input on, on which a layer may work in place, too.
/// @param all  the network's: for each layer that of its output
void TensorUses::name_tensors(const std::vector<std::size_t>& all) {
  const std::size_t input = part_.first == 0 ? 0 : all[part_.first - 1];
  tensors_.push_back({0, 0, bytes_of(layer(0).input())});
  for (std::size_t i = 0; i < layer_count(); ++i) {
    x_.push_back(last_tensor());
    y_.push_back(all[part_.first + i] - input);
    if (in_place(i)) continue;
    tensors_.back().reader = i;
    tensors_.push_back({i, 0, output_bytes(i)});
  }
}

std::optional<std::size_t> TensorUses::branch_of(std::size_t i) const {
  const auto from = layer(i).branch();
  if (!from) return std::nullopt;
  LOCKSTEP_CHECK(*from >= part_.first);
  return *from - part_.first;
}

bool TensorUses::has_gradient(std::size_t t) const {
  const bool wanted = t > 0 || part_.gives_input_gradient;
  const bool is_ours = t < last_tensor() || part_.takes_output_gradient;
  return wanted && is_ours && tensors_[t].producer >= first_trained_;
}

std::size_t TensorUses::last_of_run(std::size_t first) const {
  const auto found = std::ranges::find(runs_, first, &ChannelRun::first);
  return found == runs_.end() ? first : found->last;
}

std::size_t TensorUses::first_of_run(std::size_t last) const {
  const auto found = std::ranges::find(runs_, last, &ChannelRun::last);
  return found == runs_.end() ? last : found->first;
}

}  // namespace lockstep
