// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Greedy first fit by size.
#include "models/memory_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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

}  // namespace lockstep
