// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Places of a stage's parameters, in the rank's arena and in the network's.
#include "trainer/strategies/pipeline/held_layout.hpp"

#include <algorithm>

namespace lockstep {

const HeldRange* HeldLayout::range_of(int stage) const {
  const auto found = std::ranges::find(ranges, stage, &HeldRange::stage);
  return found == ranges.end() ? nullptr : &*found;
}

std::vector<std::size_t> HeldLayout::tensor_sizes() const {
  std::vector<std::size_t> sizes;
  for (const Parameter& parameter : layout.parameters) sizes.push_back(parameter.size);
  return sizes;
}

BucketPlan HeldLayout::buckets() const {
  BucketPlan plan;
  for (std::size_t i = ranges.size(); i-- > 0;)
    plan.buckets.push_back({.offset = ranges[i].local, .size = ranges[i].size});
  return plan;
}

HeldLayout held_layout(const Network& network, const StagePlan& plan, int rank) {
  HeldLayout held;
  for (const int number : plan.stages_of(rank)) {
    const PipelineStage& stage = plan.stages[static_cast<std::size_t>(number)];
    if (stage.arena.size == 0) continue;
    held.ranges.push_back(
        {number, stage.arena.offset, held.layout.size, stage.arena.size, held.tensors.size()});
    const auto& all = network.parameters().parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].offset < stage.arena.offset || all[i].offset >= stage.arena.offset + stage.arena.size)
        continue;
      held.layout.parameters.push_back(all[i]);
      held.layout.parameters.back().offset += held.layout.size - stage.arena.offset;
      held.tensors.push_back(i);
    }
    held.layout.size += stage.arena.size;
  }
  return held;
}

std::vector<HeldTensor> places_in_network(const HeldLayout& held, const ParameterLayout& network) {
  std::vector<HeldTensor> places;
  for (std::size_t i = 0; i < held.tensors.size(); ++i) {
    const Parameter& local = held.layout.parameters[i];
    const std::size_t number = held.tensors[i];
    places.push_back({number, network.parameters[number].offset, local.offset, local.size});
  }
  return places;
}

}  // namespace lockstep
