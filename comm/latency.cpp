// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/latency.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kSmallestBytes = 1024;
constexpr std::size_t kGrowth = 4;
constexpr int kWarmUps = 2;
constexpr int kMostRepeats = 15;

template <typename T>
void broadcast_from_first(Communicator& comm, std::span<T> data) {
  comm.broadcast(std::as_writable_bytes(data), 0);
}

std::vector<std::size_t> sizes_up_to(std::size_t max_bytes) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = kSmallestBytes; bytes < max_bytes; bytes *= kGrowth) sizes.push_back(bytes);
  sizes.push_back(std::max(max_bytes, kSmallestBytes));
  return sizes;
}

double time_once(Communicator& comm, std::span<std::int64_t> data) {
  const auto start = Clock::now();
  comm.all_reduce(data);
  return Seconds(Clock::now() - start).count();
}

/// How often to time a size that took `seconds` when warm: rank 0 decides for all. 0: no time left.
int agree_on_repeats(Communicator& comm, double seconds, double budget_left) {
  const double affordable = std::max(0.0, budget_left) / std::max(seconds, 1e-9);
  int repeats = static_cast<int>(std::min<double>(kMostRepeats, affordable));
  broadcast_from_first(comm, std::span(&repeats, 1));
  return repeats;
}

/// A machine that is busy with something else, or waits for a slow peer, only ever makes a time longer.
double shortest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace

std::vector<LatencyPoint> measure_latency(Communicator& comm, std::size_t max_bytes, Seconds budget) {
  std::vector<LatencyPoint> points;
  if (comm.size() == 1) return points;
  const std::vector<std::size_t> sizes = sizes_up_to(max_bytes);
  std::vector<std::int64_t> data(sizes.back() / sizeof(std::int64_t));
  const auto start = Clock::now();
  for (const std::size_t bytes : sizes) {
    const std::span<std::int64_t> part(data.data(), bytes / sizeof(std::int64_t));
    double warm = 0;
    for (int i = 0; i < kWarmUps; ++i) warm = time_once(comm, part);
    const double left = (budget - (Clock::now() - start)).count();
    const int repeats = agree_on_repeats(comm, warm, left);
    std::vector<double> times{warm};
    for (int i = 0; i < repeats; ++i) times.push_back(time_once(comm, part));
    points.push_back({bytes, shortest(times)});
    if (repeats == 0) break;
  }
  broadcast_from_first(comm, std::span(points));
  return points;
}

double latency_seconds(std::span<const LatencyPoint> points, std::size_t bytes) {
  if (points.empty()) return 0;
  if (points.size() == 1 || bytes <= points.front().bytes) return points.front().seconds;
  std::size_t upper = 1;
  while (upper + 1 < points.size() && points[upper].bytes < bytes) ++upper;
  const LatencyPoint &a = points[upper - 1], &b = points[upper];
  const double slope = (b.seconds - a.seconds) / static_cast<double>(b.bytes - a.bytes);
  return std::max(0.0, a.seconds + slope * static_cast<double>(bytes - a.bytes));
}

}  // namespace lockstep
