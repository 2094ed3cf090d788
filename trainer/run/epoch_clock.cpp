// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// EpochClock: times of series, sorted when they are asked for; clocks of all ranks, gathered once an epoch.
#include "trainer/run/epoch_clock.hpp"

#include "comm/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {

namespace {

/// A list of more ranks makes lines that nothing reads.
constexpr std::size_t kMostRanksListed = 64;

template <typename Number>
Number most(const std::vector<RankClock>& ranks, Number RankClock::*number) {
  return (*std::ranges::max_element(ranks, {}, number)).*number;
}

/// Names the slowest rank of an epoch, its excess over the ranks' mean, and how long the ranks waited.
void add_comparison(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) {
  const auto count = static_cast<double>(ranks.size());
  double busy = 0, exposed = 0;
  for (const RankClock& rank : ranks)
    busy += rank.busy_seconds / count, exposed += rank.exposed_seconds / count;
  const auto slowest = std::ranges::max_element(ranks, {}, &RankClock::busy_seconds);
  event["exposed_seconds"] = exposed;
  event["rank_skew"] = slowest->busy_seconds / busy - 1;
  event["slowest_rank"] = slowest - ranks.begin();
  if (ranks.size() > kMostRanksListed) return;
  for (const RankClock& rank : ranks) {
    event["rank_busy_seconds"].push_back(rank.busy_seconds);
    event["rank_exposed_seconds"].push_back(rank.exposed_seconds);
  }
}

}  // namespace

void EpochClock::start(const ParallelStrategy& strategy, std::int64_t samples) {
  series_.clear();
  at_start_ = strategy.times();
  start_ = Clock::now();
  left_out_ = {};
  train_seconds_.reset();
  samples_before_ = samples;
}

void EpochClock::add(std::int64_t steps, double seconds) {
  if (steps > 0) series_.push_back({seconds / static_cast<double>(steps), steps});
}

double EpochClock::percentile(double share) const {
  std::vector<Series> sorted = series_;
  std::ranges::sort(sorted, {}, &Series::seconds_of_step);
  std::int64_t all = 0, so_far = 0;
  for (const Series& one : sorted) all += one.steps;
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(all)));
  for (const Series& one : sorted) {
    so_far += one.steps;
    if (so_far >= wanted) return one.seconds_of_step;
  }
  return 0;
}

std::uint64_t resident_together(std::span<const RankMemory> ranks) {
  std::uint64_t all = 0, most_shared = 0;
  for (const RankMemory& memory : ranks) {
    const std::uint64_t shared = std::min(memory.shared, memory.peak);
    all += memory.peak - shared;
    most_shared = std::max(most_shared, shared);
  }
  return all + most_shared;
}

std::vector<RankClock> EpochClock::all_ranks(const ParallelStrategy& strategy, const Gpu* gpu,
                                             Communicator& comm) const {
  const StepTimes& times = strategy.times();
  RankClock mine{.resident = resident_bytes(), .peak_resident = peak_resident_bytes()};
  if (gpu != nullptr) {  // the host cannot see how long a GPU waits
    const DeviceMemoryUse use = gpu->device->memory_use();
    mine.device = use.allocated;
    mine.peak_device = use.most_allocated;
  } else {
    mine.exposed_seconds = times.exposed - at_start_.exposed;
    mine.busy_seconds = times.total - at_start_.total - mine.exposed_seconds;
  }
  return gather(comm, mine);
}

void EpochClock::add_to(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) const {
  if (!series_.empty()) {
    event["step_seconds_p50"] = percentile(0.5);
    event["step_seconds_p90"] = percentile(0.9);
    event["step_seconds_p99"] = percentile(0.99);
  }
  event["resident_bytes"] = most(ranks, &RankClock::resident);
  event["peak_resident_bytes"] = most(ranks, &RankClock::peak_resident);
  if (most(ranks, &RankClock::peak_device) > 0) {
    event["device_bytes"] = most(ranks, &RankClock::device);
    event["peak_device_bytes"] = most(ranks, &RankClock::peak_device);
  }
  if (ranks.size() > 1 && most(ranks, &RankClock::busy_seconds) > 0) add_comparison(event, ranks);
}

}  // namespace lockstep
