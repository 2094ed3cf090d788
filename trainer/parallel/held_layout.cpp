// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages with parameters, one after the other.
#include "trainer/parallel/held_layout.hpp"

#include <algorithm>

namespace lockstep {

const HeldRange* HeldLayout::range_of(int stage) const {
  const auto found = std::ranges::find(ranges, stage, &HeldRange::stage);
  return found == ranges.end() ? nullptr : &*found;
}

bool HeldLayout::take_units(const GradientUnits& whole, GradientUnits& own) const {
  std::vector<std::int16_t> exponents;
  for (const HeldTensor& tensor : tensors) exponents.push_back(whole.exponents()[tensor.number]);
  if (std::ranges::equal(exponents, own.exponents())) return false;
  own.restore(exponents, whole.changed_at());
  return true;
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
    const PipelineStage& stage = at(plan.stages, number);
    if (stage.arena.size == 0) continue;
    held.ranges.push_back(
        {number, stage.arena.offset, held.layout.size, stage.arena.size, held.tensors.size()});
    const auto& all = network.parameters().parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].offset < stage.arena.offset || all[i].offset >= stage.arena.offset + stage.arena.size)
        continue;
      Parameter& local = held.layout.parameters.emplace_back(all[i]);
      local.offset += held.layout.size - stage.arena.offset;
      held.tensors.push_back({i, all[i].offset, local.offset, local.size});
    }
    held.layout.size += stage.arena.size;
  }
  return held;
}

}  // namespace lockstep
