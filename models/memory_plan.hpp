// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lets tensors share memory if never used at once, so that a grain's working set stays in the cache.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// A tensor that must keep its contents from one moment to another, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one for each lifetime, multiples of kAlignmentBytes
  std::size_t bytes = 0;             ///< for all together

  static constexpr std::size_t kAlignmentBytes = 64;
};

/// Largest first, each at the lowest place where it overlaps nothing that lives at the same time.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

}  // namespace lockstep
