// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The shortest of a few rounds over all sizes; between the sizes, straight lines.
#include "comm/latency.hpp"

#include "common/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace lockstep {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t kSmallestBytes = 1024;
constexpr std::size_t kGrowth = 4;
constexpr int kLeastRounds = 3;  // the first one warms up connections and caches
constexpr int kMostRounds = 20;

template <typename T>
void broadcast_from_first(Communicator& comm, std::span<T> data) {
  comm.broadcast(std::as_writable_bytes(data), 0);
}

double time_once(Communicator& comm, std::span<std::int64_t> data) {
  const auto start = Clock::now();
  comm.all_reduce(data);
  return seconds_since(start);
}

/// Rank 0's clock decides for all.
bool agree_on_another_round(Communicator& comm, int rounds_done, bool time_left) {
  std::uint8_t go_on = rounds_done < kLeastRounds || (rounds_done < kMostRounds && time_left) ? 1 : 0;
  broadcast_from_first(comm, std::span(&go_on, 1));
  return go_on != 0;
}

}  // namespace

std::vector<std::size_t> latency_sizes(std::size_t max_bytes) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = kSmallestBytes; bytes < max_bytes; bytes *= kGrowth) sizes.push_back(bytes);
  sizes.push_back(std::max(max_bytes, kSmallestBytes));
  return sizes;
}

std::vector<LatencyPoint> measure_latency(Communicator& comm, std::size_t max_bytes, Seconds budget) {
  std::vector<LatencyPoint> points;
  if (comm.size() == 1) return points;
  for (const std::size_t bytes : latency_sizes(max_bytes)) {
    points.push_back({bytes, std::numeric_limits<double>::max()});
  }
  std::vector<std::int64_t> data(points.back().bytes / sizeof(std::int64_t));
  const auto start = Clock::now();
  for (int round = 0; agree_on_another_round(comm, round, Clock::now() - start < budget); ++round) {
    for (LatencyPoint& point : points) {
      const double seconds = time_once(comm, std::span(data.data(), point.bytes / sizeof(std::int64_t)));
      // A machine that is busy with something else, or waits for a slow peer, only ever makes a time longer.
      point.seconds = std::min(point.seconds, seconds);
    }
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
