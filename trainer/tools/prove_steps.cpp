// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parts of a proof: ranges of steps, plans of their replay, and the one bit that makes a difference.
#include "trainer/tools/prove_steps.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

namespace lockstep {

// Parses, describes, joins and subtracts ranges.

namespace {

/// 0 for an empty text; -1 if it is not a step.
std::int64_t parse_step(std::string_view text) {
  if (text.empty()) return 0;
  const auto step = parse_whole<std::int64_t>(text);
  return step && *step > 0 ? *step : -1;
}

}  // namespace

StepRange parse_steps(const std::string& text) {
  const std::size_t dots = text.find("..");
  const std::string_view all = text;
  const StepRange range = dots == all.npos
                              ? StepRange{parse_step(all), parse_step(all)}
                              : StepRange{parse_step(all.substr(0, dots)), parse_step(all.substr(dots + 2))};
  const bool good = range.first >= 0 && range.last >= 0 && (range.last == 0 || range.first <= range.last) &&
                    !text.empty() && text != "..";
  if (good) return range;
  throw UsageError(fmt::format(
      "--steps: {} is not a range of steps, which are counted from 1; for example 7, 1..100, 400.. or ..100",
      quoted_text(text)));
}

std::string describe(const std::vector<StepRange>& ranges) {
  if (ranges.empty()) return "none";
  std::string text = plural(count_steps(ranges), "step") + " ";
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    text += i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ";
    text += with_thousands(ranges[i].first);
    if (ranges[i].count() > 1) text += " to " + with_thousands(ranges[i].last);
  }
  return text;
}

std::vector<StepRange> merged(std::vector<StepRange> ranges) {
  std::erase_if(ranges, [](const StepRange& range) { return range.empty(); });
  std::ranges::sort(ranges, {}, &StepRange::first);
  std::vector<StepRange> result;
  for (const StepRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<StepRange> without(const std::vector<StepRange>& a, const std::vector<StepRange>& b) {
  std::vector<StepRange> result;
  auto near = b.begin();  // those before it end before the wanted range
  for (StepRange rest : a) {
    while (near != b.end() && near->last < rest.first) ++near;
    for (auto taken = near; taken != b.end() && taken->first <= rest.last; ++taken) {
      if (taken->first > rest.first) result.push_back({rest.first, taken->first - 1});
      rest.first = taken->last + 1;
    }
    if (!rest.empty()) result.push_back(rest);
  }
  return result;
}

/// Floyd's algorithm over the others: every set of them is as likely as any other.
std::vector<StepRange> sample_steps(const StepRange& all, std::int64_t count, std::uint64_t seed,
                                    const std::set<std::int64_t>& always) {
  std::set<std::int64_t> fixed;
  for (const std::int64_t step : always)
    if (all.contains(step)) fixed.insert(step);
  const std::int64_t others = all.count() - std::ssize(fixed);
  const std::int64_t wanted = std::clamp<std::int64_t>(count - std::ssize(fixed), 0, others);
  std::mt19937_64 random(seed);
  std::set<std::int64_t> chosen;
  for (std::int64_t most = others - wanted; most < others; ++most) {
    const auto number = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    if (!chosen.insert(number).second) chosen.insert(most);
  }
  std::vector<StepRange> ranges;
  for (const std::int64_t step : fixed) ranges.push_back({step, step});
  for (const std::int64_t number : chosen) {
    std::int64_t step = all.first + number;
    for (const std::int64_t skipped : fixed) step += skipped <= step ? 1 : 0;
    ranges.push_back({step, step});
  }
  return merged(std::move(ranges));
}

std::int64_t count_steps(const std::vector<StepRange>& ranges) {
  std::int64_t count = 0;
  for (const StepRange& range : ranges) count += range.count();
  return count;
}

// As few replays as reach every wanted step, shared out among workers.

namespace {

/// The last step that can be replayed in one go after `step`; `step` itself if none can.
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

// The difference is +-2^bit times the word's multiplier, which is odd and so can be divided by.

namespace {

/// Inverse of an odd number mod 2^64, by Newton's iteration. Each round doubles the bits that are right, from 3 on.
std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t result = odd;
  for (int round = 0; round < 5; ++round) result *= 2 - odd * result;
  return result;
}

}  // namespace

std::optional<WordBit> find_flipped_bit(std::uint64_t difference, const FingerprintedWords& words) {
  if (difference == 0) return std::nullopt;
  // Odd multipliers leave the number of trailing zeros as it is.
  const int bit = std::countr_zero(difference);
  if (bit >= words.bits) return std::nullopt;
  const std::uint64_t power = std::uint64_t{1} << bit;
  for (std::size_t i = 0; i < words.size; ++i) {
    const std::uint64_t quotient = difference * inverse(word_multiplier(words.buffer, words.first + i));
    if (quotient == power || quotient == 0 - power) return WordBit{i, bit};
  }
  return std::nullopt;
}

}  // namespace lockstep
