// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Medians throughout: what disturbs a few steps says nothing about a rank.
#include "comm/watchdog/stragglers.hpp"

#include <algorithm>
#include <limits>

namespace lockstep::watchdog {
namespace {

constexpr std::int64_t kSteps = 100;
constexpr std::size_t kMostOpen = 1 << 16;
constexpr double kMostlyLast = 0.6;
constexpr double kSlower = 1.04;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Of all but one.
double median_of_others(const std::vector<double>& values, std::size_t without) {
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != without) others.push_back(values[i]);
  }
  return median(others);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Stragglers::Stragglers(std::vector<std::string> hosts)
    : hosts_(std::move(hosts)),
      sums_(hosts_.size()),
      best_work_(hosts_.size(), std::numeric_limits<double>::infinity()),
      named_windows_(hosts_.size()) {}

void Stragglers::add(int rank, const std::vector<Arrival>& arrivals) {
  for (const Arrival& arrival : arrivals) {
    Bucket& bucket = open_[{arrival.step, arrival.bucket}];
    bucket.by_rank.resize(hosts_.size());
    auto& place = bucket.by_rank[static_cast<std::size_t>(rank)];
    if (!place) ++bucket.there;
    place = arrival;
    if (bucket.there == hosts_.size()) {
      compare(bucket.by_rank);
      open_.erase({arrival.step, arrival.bucket});
    }
  }
  while (open_.size() > kMostOpen) open_.erase(open_.begin());
}

void Stragglers::compare(const std::vector<std::optional<Arrival>>& arrivals) {
  const std::int64_t step = arrivals.front()->step;
  if (first_step_ < 0 || step < first_step_) first_step_ = step;
  if (step - first_step_ >= kSteps) {
    judge();
    first_step_ = step;
  }
  const bool first_half = step - first_step_ < kSteps / 2;
  std::vector<double> times;
  for (const auto& arrival : arrivals)
    times.push_back(static_cast<double>(arrival->arrived_ns - arrivals.front()->arrived_ns));
  const auto last = static_cast<std::size_t>(std::ranges::max_element(times) - times.begin());
  Sums& sums = sums_[last];
  ++buckets_;
  ++sums.last;
  if (first_half) ++buckets_in_first_half_, ++sums.last_in_first_half;
  sums.late_ns += static_cast<std::int64_t>(times[last] - median_of_others(times, last));
  for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
    const Arrival& arrival = *arrivals[rank];
    if (arrival.grains <= 0) continue;
    sums_[rank].work.push_back(static_cast<double>(arrival.work_ns) / arrival.grains);
    sums_[rank].between.push_back(static_cast<double>(arrival.between_ns) / arrival.grains);
  }
}

void Stragglers::judge() {
  ++windows_;
  std::vector<double> work, between;
  for (const Sums& sums : sums_) {
    work.push_back(median(sums.work));
    between.push_back(median(sums.between));
  }
  const double best = *std::ranges::min_element(work);
  scores_.clear();
  for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
    const Sums& sums = sums_[rank];
    best_work_[rank] = std::min(best_work_[rank], work[rank]);
    const double others = median_of_others(work, rank);
    const double more = work[rank] - others, more_between = between[rank] - median_of_others(between, rank);
    RankScore score{.rank = static_cast<int>(rank),
                    .host = hosts_[rank],
                    .score = work[rank] > 0 ? std::min(best, best_work_[rank]) / work[rank] : 1,
                    .last_share = share(sums.last, buckets_),
                    .late_seconds = share(sums.late_ns, sums.last) * 1e-9,
                    .cause = more_between > more / 2 ? "between steps" : "compute"};
    const bool mostly_last =
        share(sums.last_in_first_half, buckets_in_first_half_) >= kMostlyLast &&
        share(sums.last - sums.last_in_first_half, buckets_ - buckets_in_first_half_) >= kMostlyLast;
    score.named = mostly_last && work[rank] > kSlower * others;
    if (score.named) ++named_windows_[rank];
    score.windows = windows_;
    score.named_windows = named_windows_[rank];
    if (score.named && score.named_windows == 1) newly_.push_back(score);
    scores_.push_back(score);
  }
  sums_.assign(hosts_.size(), {});
  buckets_ = buckets_in_first_half_ = 0;
}

std::vector<RankScore> Stragglers::newly_named() {
  return std::exchange(newly_, {});
}

}  // namespace lockstep::watchdog
