// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Quantiles throughout: what disturbs a few steps says nothing about a rank.
#include "comm/watchdog/stragglers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep::watchdog {
namespace {

constexpr std::size_t kSteps = 80;
constexpr int kJudgedEvery = 10;
constexpr std::size_t kMostOpen = 1 << 16;
constexpr double kMostlyLast = 0.6;
/// How far above its share by chance, in standard deviations.
constexpr double kBeyondChance = 3;
constexpr double kSlower = 1.04;
/// Who works with others on a core is disturbed in some steps, and never finishes too early: what it takes for its work
/// shows below the middle.
constexpr double kTypical = 0.4;

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
  std::ranges::nth_element(values, place);
  return *place;
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// Of all but one.
double median_of_others(const std::vector<double>& values, std::size_t without) {
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != without) others.push_back(values[i]);
  }
  return median(others);
}

}  // namespace

Stragglers::Stragglers(std::vector<std::string> hosts)
    : hosts_(std::move(hosts)), best_work_(hosts_.size(), std::numeric_limits<double>::infinity()) {}

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
  const std::int64_t number = arrivals.front()->step;
  if (steps_.empty() || steps_.back().number != number) {
    // The one before is complete now.
    if (steps_.size() >= kSteps && ++since_judged_ >= kJudgedEvery) judge();
    steps_.push_back({.number = number, .by_rank = std::vector<Share>(hosts_.size())});
    if (steps_.size() > kSteps) steps_.pop_front();
  }
  Step& step = steps_.back();
  ++step.buckets;
  std::vector<double> times;
  for (const auto& arrival : arrivals)
    times.push_back(static_cast<double>(arrival->arrived_ns - arrivals.front()->arrived_ns));
  const auto last = static_cast<std::size_t>(std::ranges::max_element(times) - times.begin());
  ++step.by_rank[last].last;
  step.by_rank[last].late_ns += times[last] - median_of_others(times, last);
  for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
    const Arrival& arrival = *arrivals[rank];
    if (arrival.grains <= 0) continue;
    // The last bucket knows of all the step's work.
    Share& share = step.by_rank[rank];
    share.work = std::max(share.work, static_cast<double>(arrival.work_ns) / arrival.grains);
    share.between = static_cast<double>(arrival.between_ns) / arrival.grains;
  }
}

double Stragglers::last_share(std::size_t rank, std::size_t begin, std::size_t end) const {
  double last = 0, buckets = 0;
  for (std::size_t i = begin; i < end; ++i) {
    last += steps_[i].by_rank[rank].last;
    buckets += steps_[i].buckets;
  }
  return last / buckets;
}

/// A step's buckets are no independent witnesses: chance is counted in steps.
bool Stragglers::mostly_last(std::size_t rank) const {
  const std::size_t half = steps_.size() / 2;
  const double fair = 1.0 / static_cast<double>(hosts_.size());
  const double chance = std::sqrt(fair * (1 - fair) / static_cast<double>(steps_.size()));
  return last_share(rank, 0, half) >= kMostlyLast && last_share(rank, half, steps_.size()) >= kMostlyLast &&
         last_share(rank, 0, steps_.size()) >= fair + kBeyondChance * chance;
}

std::vector<double> Stragglers::typical(double Share::*of) const {
  std::vector<double> all;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    std::vector<double> values;
    for (const Step& step : steps_) {
      if (step.by_rank[rank].work > 0) values.push_back(step.by_rank[rank].*of);
    }
    all.push_back(quantile(std::move(values), kTypical));
  }
  return all;
}

void Stragglers::judge() {
  since_judged_ = 0;
  const auto work = typical(&Share::work), between = typical(&Share::between);
  scores_.resize(hosts_.size());
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    best_work_[rank] = std::min(best_work_[rank], work[rank]);
    const RankScore before = scores_[rank];
    RankScore now = judge_rank(rank, work, between);
    const bool first = now.named && before.first_named_step == 0;
    now.first_named_step = first ? steps_.back().number : before.first_named_step;
    now.times_judged = before.times_judged + (now.first_named_step > 0 ? 1 : 0);
    now.times_named = before.times_named + (now.named ? 1 : 0);
    scores_[rank] = now;
    if (first) newly_.push_back(now);
  }
}

RankScore Stragglers::judge_rank(std::size_t rank, const std::vector<double>& work,
                                 const std::vector<double>& between) const {
  const double best = *std::ranges::min_element(work);
  const double others = median_of_others(work, rank);
  const double more = work[rank] - others, more_between = between[rank] - median_of_others(between, rank);
  double late_ns = 0, last = 0;
  for (const Step& step : steps_) {
    late_ns += step.by_rank[rank].late_ns;
    last += step.by_rank[rank].last;
  }
  return {.rank = static_cast<int>(rank),
          .host = hosts_[rank],
          .score = work[rank] > 0 ? std::min(best, best_work_[rank]) / work[rank] : 1,
          .last_share = last_share(rank, 0, steps_.size()),
          .late_seconds = last > 0 ? late_ns / last * 1e-9 : 0,
          .cause = more_between > more / 2 ? "between steps" : "compute",
          .named = mostly_last(rank) && work[rank] > kSlower * others};
}

std::vector<RankScore> Stragglers::newly_named() {
  return std::exchange(newly_, {});
}

}  // namespace lockstep::watchdog
