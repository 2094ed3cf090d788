// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Quantiles throughout: what disturbs a few steps says nothing about a rank.
#include "comm/watch/stragglers.hpp"

#include "common/output.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

namespace lockstep::watchdog {

namespace {

constexpr std::size_t kSteps = 80;
constexpr int kJudgedEvery = 10;
/// Arrivals that are waited for with others of their bucket, so that memory is bounded however many ranks there are.
constexpr std::size_t kMostOpen = 1 << 20;
/// Rank 0 compares about so many arrivals between two beats: a percent of a core.
constexpr std::size_t kMostPerBeat = 4096;
constexpr double kMostly = 0.6;
/// How far above its share by chance, in standard deviations.
constexpr double kBeyondChance = 3;
constexpr double kSlower = 1.04;
/// Who works with others on a core is disturbed in some steps, and never finishes too early: what it takes for its work
/// shows below the middle.
constexpr double kTypical = 0.4;
/// From this share of its time on that a rank waits for a processor, other programs are in all that is measured: a
/// rank that is interrupted finds others' data in its caches. (Linux takes a twentieth even from those who go first.)
constexpr double kLoaded = 0.1;
/// So much longer may work take for each share of the time that is waited.
constexpr double kLongerByLoad = 0.5;
/// And it takes so long until it is clear whose fault it is,
constexpr std::int64_t kPassesIn = 3'000'000'000;
/// or so much: a neighbour on the same core does less.
constexpr double kBeyondLoad = 1.75;

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
  std::ranges::nth_element(values, place);
  return *place;
}

std::size_t place_of_most(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace

Stragglers::MedianOfOthers::MedianOfOthers(std::vector<double> values) : sorted_(std::move(values)) {
  std::ranges::sort(sorted_);
}

double Stragglers::MedianOfOthers::operator()(double without) const {
  if (sorted_.size() < 2) return 0;
  const std::size_t middle = (sorted_.size() - 1) / 2;
  return sorted_[without <= sorted_[middle] ? middle + 1 : middle];
}

Stragglers::Stragglers(std::vector<std::string> hosts) : hosts_(std::move(hosts)), past_(hosts_.size()) {}

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
      // Ranks report in the order of steps: what lacks one by now is of a step that it did not report.
      open_.erase(open_.begin(), open_.lower_bound({arrival.step, 0}));
    }
  }
  while (open_.size() * hosts_.size() > kMostOpen) open_.erase(open_.begin());
}

void Stragglers::compare(const std::vector<std::optional<Arrival>>& arrivals) {
  const std::int64_t number = arrivals.front()->step;
  if (steps_.empty() || steps_.back().number != number) {
    // The one before is complete now.
    if (steps_.size() >= kSteps && ++since_judged_ >= kJudgedEvery) judge();
    steps_.push_back({.number = number,
                      .arrived_ns = arrivals.front()->arrived_ns,
                      .by_rank = std::vector<Share>(hosts_.size())});
    if (steps_.size() > kSteps) steps_.pop_front();
  }
  Step& step = steps_.back();
  ++step.buckets;
  count_last(step, arrivals);
  for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
    const Arrival& arrival = *arrivals[rank];
    if (arrival.grains <= 0) continue;
    // The last bucket knows of all the step's work.
    Share& share = step.by_rank[rank];
    share.work = std::max(share.work, static_cast<double>(arrival.work_ns) / arrival.grains);
    share.queued = std::max(share.queued, static_cast<double>(arrival.queued_ns) / arrival.grains);
    share.between = static_cast<double>(arrival.between_ns) / arrival.grains;
  }
}

void Stragglers::count_last(Step& step, const std::vector<std::optional<Arrival>>& arrivals) const {
  std::vector<double> times, work;
  for (const auto& arrival : arrivals) {
    times.push_back(static_cast<double>(arrival->arrived_ns - arrivals.front()->arrived_ns));
    work.push_back(static_cast<double>(arrival->work_ns));
  }
  const std::size_t last = place_of_most(times);
  ++step.by_rank[last].last;
  step.by_rank[last].late_ns += times[last] - MedianOfOthers(times)(times[last]);
  ++step.by_rank[place_of_most(work)].most;
}

double Stragglers::share(int Share::*of, std::size_t rank, std::size_t begin, std::size_t end) const {
  double count = 0, buckets = 0;
  for (std::size_t i = begin; i < end; ++i) {
    count += steps_[i].by_rank[rank].*of;
    buckets += steps_[i].buckets;
  }
  return count / buckets;
}

/// A step's buckets are no independent witnesses: chance is counted in steps.
bool Stragglers::mostly(int Share::*of, std::size_t rank) const {
  const std::size_t half = steps_.size() / 2;
  const double fair = 1.0 / static_cast<double>(hosts_.size());
  const double chance = std::sqrt(fair * (1 - fair) / static_cast<double>(steps_.size()));
  return share(of, rank, 0, half) >= kMostly && share(of, rank, half, steps_.size()) >= kMostly &&
         share(of, rank, 0, steps_.size()) >= fair + kBeyondChance * chance;
}

double Stragglers::queued_share(std::size_t rank) const {
  double queued = 0, wall = 0;
  for (const Step& step : steps_) {
    queued += step.by_rank[rank].queued;
    wall += step.by_rank[rank].wall();
  }
  return wall > 0 ? queued / wall : 0;
}

template <typename Of>
std::vector<double> Stragglers::typical(const Of& of) const {
  std::vector<double> all;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    std::vector<double> values;
    for (const Step& step : steps_) {
      if (step.by_rank[rank].work > 0) values.push_back(of(step.by_rank[rank]));
    }
    all.push_back(quantile(std::move(values), kTypical));
  }
  return all;
}

std::int64_t Stragglers::Since::so_for(bool now, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!now) since_ns_.reset();
  if (now && !since_ns_) since_ns_ = begin_ns;
  return now ? end_ns - *since_ns_ : 0;
}

void Stragglers::judge() {
  since_judged_ = 0;
  const Typical all{typical([](const Share& share) { return share.work; }),
                    typical([](const Share& share) { return share.between; }),
                    typical([](const Share& share) { return share.wall(); })};
  const Middle middle{MedianOfOthers(all.work), MedianOfOthers(all.between), MedianOfOthers(all.wall),
                      std::ranges::min(all.work)};
  double load = 0;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) load = std::max(load, queued_share(rank));
  scores_.resize(hosts_.size());
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    past_[rank].best_work = std::min(past_[rank].best_work, all.work[rank]);
    remember(judge_rank(rank, all, middle, load));
  }
}

void Stragglers::remember(const RankScore& judged) {
  RankScore now = judged;
  RankScore& score = scores_[static_cast<std::size_t>(now.rank)];
  const bool first = now.named && score.first_named_step == 0;
  now.first_named_step = first ? steps_.back().number : score.first_named_step;
  now.times_judged = score.times_judged + (now.first_named_step > 0 ? 1 : 0);
  now.times_named = score.times_named + (now.named ? 1 : 0);
  score = now;
  if (first) newly_named_.push_back(now);
  if (now.crowded && crowded_hosts_.insert(now.host).second) newly_crowded_.push_back(now);
}

RankScore Stragglers::judge_rank(std::size_t rank, const Typical& typical, const Middle& middle,
                                 double load) {
  Past& past = past_[rank];
  const double own = typical.work[rank], others = middle.work(own);
  const double more = own - others;
  const double more_between = typical.between[rank] - middle.between(typical.between[rank]);
  double late_ns = 0, last = 0;
  for (const Step& step : steps_) {
    late_ns += step.by_rank[rank].late_ns;
    last += step.by_rank[rank].last;
  }
  const bool loaded = load >= kLoaded;
  const double slower = kSlower + (loaded ? kLongerByLoad * load : 0);
  const bool slow = mostly(&Share::most, rank) && own > slower * others;
  const double queued = queued_share(rank);
  const bool waits = !slow && mostly(&Share::last, rank) && queued >= kLoaded &&
                     typical.wall[rank] > kSlower * middle.wall(typical.wall[rank]);
  const std::int64_t begin = steps_.front().arrived_ns, end = steps_.back().arrived_ns;
  const std::int64_t slow_for = past.slow.so_for(slow, begin, end);
  const std::int64_t waits_for = past.crowded.so_for(waits, begin, end);
  return {.rank = static_cast<int>(rank),
          .host = hosts_[rank],
          .score = own > 0 ? std::min(middle.best_work, past.best_work) / own : 1,
          .last_share = share(&Share::last, rank, 0, steps_.size()),
          .late_seconds = last > 0 ? late_ns / last * 1e-9 : 0,
          .cause = more_between > more / 2 ? "between steps" : "compute",
          .queued_share = queued,
          .named = slow && (!loaded || own > kBeyondLoad * others || slow_for >= kPassesIn),
          .crowded = waits_for >= kPassesIn};
}

std::vector<RankScore> Stragglers::newly_named() {
  return std::exchange(newly_named_, {});
}

std::vector<RankScore> Stragglers::newly_crowded() {
  return std::exchange(newly_crowded_, {});
}

// Comparison: what a beat carries of the arrivals, and what rank 0 makes of them.

namespace {

std::vector<std::string> hosts_of_all(const std::vector<Peer>& peers) {
  std::vector<std::string> hosts;
  hosts.reserve(peers.size());
  for (const Peer& peer : peers) hosts.push_back(peer.who.host);
  return hosts;
}

}  // namespace

Comparison::Comparison(Communicator& comm, Heartbeat& heartbeat, const std::vector<Peer>& peers)
    : comm_(comm), heartbeat_(heartbeat), peers_(peers), stragglers_(hosts_of_all(peers)) {}

std::int64_t Comparison::every(std::size_t arrivals, std::size_t ranks) {
  return static_cast<std::int64_t>(std::bit_ceil(1 + arrivals * ranks / kMostPerBeat));
}

void Comparison::report() {
  std::vector<Arrival> list = comm_.activity().arrivals().take();
  const std::int64_t every = Comparison::every(list.size(), peers_.size());
  std::erase_if(list, [&](const Arrival& arrival) { return arrival.step % every != 0; });
  if (list.empty()) return;
  if (comm_.rank() == 0) return add(0, std::move(list));
  for (std::size_t begin = 0; begin < list.size(); begin += kMostArrivals) {
    const auto from = list.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostArrivals, list.size() - begin));
    heartbeat_.send_arrivals({{from, from + count}});
  }
}

void Comparison::add(int rank, std::vector<Arrival> arrivals) {
  if (comm_.rank() != 0) return;
  const auto offset = heartbeat_.offset(rank);
  if (rank != 0 && !offset) return;
  // On one host there is one clock.
  const bool same_clock = peers_[static_cast<std::size_t>(rank)].who.host == peers_.front().who.host;
  const std::int64_t ahead = same_clock ? 0 : offset->ahead_ns;
  for (Arrival& arrival : arrivals) arrival.arrived_ns -= ahead;
  stragglers_.add(rank, arrivals);
  for (const RankScore& named : stragglers_.newly_named()) print_error(describe(named));
  for (const RankScore& crowded : stragglers_.newly_crowded()) print_error(describe_crowded(crowded));
  const std::lock_guard lock(mutex_);
  scores_ = stragglers_.scores();
}

std::vector<RankScore> Comparison::scores() const {
  const std::lock_guard lock(mutex_);
  return scores_;
}

}  // namespace lockstep::watchdog
