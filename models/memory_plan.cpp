// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// plan_memory: greedy first fit by size. And which layers of a network share a tensor, or what the cache holds.
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/tensor_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + MemoryPlan::kAlignmentBytes - 1) / MemoryPlan::kAlignmentBytes *
         MemoryPlan::kAlignmentBytes;
}

/// A piece of memory that is taken.
struct Taken {
  std::size_t begin, end;
};

std::size_t lowest_gap(std::vector<Taken> taken, std::size_t bytes) {
  std::ranges::sort(taken, {}, &Taken::begin);
  std::size_t place = 0;
  for (const Taken& piece : taken) {
    if (place + bytes <= piece.begin) break;
    place = std::max(place, piece.end);
  }
  return place;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  MemoryPlan plan;
  plan.offsets.resize(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Lifetime& tensor = tensors[order[i]];
    std::vector<Taken> taken;
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& other = tensors[order[j]];
      const std::size_t begin = plan.offsets[order[j]];
      if (tensor.first <= other.last && other.first <= tensor.last)
        taken.push_back({begin, begin + aligned(other.bytes)});
    }
    const std::size_t bytes = aligned(tensor.bytes);
    plan.offsets[order[i]] = lowest_gap(std::move(taken), bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[order[i]] + bytes);
  }
  return plan;
}

// One walk over the layers, which remembers what backward and branches will ask of the tensor at hand.

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

}  // namespace lockstep
