// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which steps are replayed from where.
#pragma once

#include "trainer/prove/steps.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// A state of the run that is at hand: a checkpoint, or what it began with.
struct StartPoint {
  std::int64_t step = 0;   ///< steps taken
  std::string checkpoint;  ///< its directory; empty: the beginning
};

/// Steps that are replayed in one go.
struct Interval {
  StartPoint start;
  std::int64_t last = 0;
  std::string end;  ///< the checkpoint of that step, if there is a good one

  StepRange steps() const { return {start.step + 1, last}; }
};

/// Every step of `wanted` that can be reached, each from the nearest start before it.
/// @param starts     by step
/// @param reachable  steps that can be replayed here; merged
std::vector<Interval> plan_intervals(const std::vector<StartPoint>& starts,
                                     const std::vector<StepRange>& reachable,
                                     const std::vector<StepRange>& wanted);

/// Which of so many workers takes each interval, so that the longest work is short.
std::vector<std::size_t> share_intervals(const std::vector<Interval>& intervals, std::size_t workers);

}  // namespace lockstep
