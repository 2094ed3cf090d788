// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranges of steps, and which of them are asked for.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

/// Steps from first to last, counted from 1, both included.
struct StepRange {
  std::int64_t first = 1, last = 0;

  bool empty() const { return last < first; }
  std::int64_t count() const { return empty() ? 0 : last - first + 1; }
  bool contains(std::int64_t step) const { return first <= step && step <= last; }
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// "7", "7..12", "7..", "..12"; an open end is 0. @throws UsageError  anything else
StepRange parse_steps(const std::string& text);

/// "step 7", "steps 7 to 12"
std::string describe(const StepRange& range);
/// "steps 1 to 6, 9 and 12 to 40"; "none"
std::string describe(const std::vector<StepRange>& ranges);

/// Sorted and without gaps or overlaps that need not be.
std::vector<StepRange> merged(std::vector<StepRange> ranges);
/// What of `a` is not in `b`; both merged.
std::vector<StepRange> without(const std::vector<StepRange>& a, const std::vector<StepRange>& b);
/// So many steps of a range at random, fewer than it has. What a run came to is always looked at.
/// @param always  those of them that lie in the range take the place of others; where these are more, so many
std::vector<StepRange> sample_steps(const StepRange& all, std::int64_t count, std::uint64_t seed,
                                    const std::set<std::int64_t>& always);
std::int64_t count_steps(const std::vector<StepRange>& ranges);

}  // namespace lockstep
