// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// As few replays as reach every wanted step, shared out among workers.
#include "trainer/prove/interval.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lockstep {
namespace {

/// The last step that can be replayed in one go behind `step`; `step` itself if none can.
std::int64_t reach_of(std::int64_t step, const std::vector<StepRange>& reachable) {
  for (const StepRange& range : reachable)
    if (range.contains(step + 1)) return range.last;
  return step;
}

/// The last wanted step in a range; 0: none.
std::int64_t last_wanted(const StepRange& range, const std::vector<StepRange>& wanted) {
  std::int64_t last = 0;
  for (const StepRange& w : wanted) {
    const StepRange common{std::max(range.first, w.first), std::min(range.last, w.last)};
    if (!common.empty()) last = std::max(last, common.last);
  }
  return last;
}

}  // namespace

std::vector<Interval> plan_intervals(const std::vector<StartPoint>& starts,
                                     const std::vector<StepRange>& reachable,
                                     const std::vector<StepRange>& wanted) {
  std::vector<Interval> intervals;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const bool is_last = i + 1 == starts.size();
    const std::int64_t next = is_last ? std::numeric_limits<std::int64_t>::max() : starts[i + 1].step;
    const std::int64_t reach = std::min(next, reach_of(starts[i].step, reachable));
    const std::int64_t last = last_wanted({starts[i].step + 1, reach}, wanted);
    if (last == 0) continue;
    intervals.push_back({starts[i], last, last == next ? starts[i + 1].checkpoint : ""});
  }
  return intervals;
}

std::vector<std::size_t> share_intervals(const std::vector<Interval>& intervals, std::size_t workers) {
  std::vector<std::size_t> order(intervals.size()), worker_of(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return intervals[i].steps().count(); });
  std::vector<std::int64_t> load(workers);
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += intervals[i].steps().count();
    worker_of[i] = static_cast<std::size_t>(least - load.begin());
  }
  return worker_of;
}

}  // namespace lockstep
