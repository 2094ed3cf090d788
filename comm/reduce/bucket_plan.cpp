// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Buckets of a given size, and buckets that a cost model finds best.
#include "comm/reduce/bucket_plan.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lockstep {

namespace {

constexpr double kSameSeconds = 1e-12;  // below this, two predictions differ by rounding only

void check_ranges(std::span<const GradientRange> ranges) {
  for (std::size_t i = 1; i < ranges.size(); ++i)
    LOCKSTEP_CHECK(ranges[i].offset + ranges[i].size == ranges[i - 1].offset);
}

/// Backward goes down through the arena: a bucket begins where its last range does.
Bucket make_bucket(std::span<const GradientRange> ranges, std::size_t first, std::size_t last) {
  const std::size_t offset = ranges[last].offset;
  return {offset, ranges[first].offset + ranges[first].size - offset, first, last};
}

/// Facts of the job that the search for the best plan needs.
struct CostModel {
  std::span<const GradientRange> ranges;
  std::size_t bytes_per_element;
  std::span<const LatencyPoint> latency;
  std::vector<double> done;  ///< when backward finishes each range
  double backward_end = 0;

  CostModel(std::span<const GradientRange> r, std::size_t bytes, std::span<const LatencyPoint> l)
      : ranges(r), bytes_per_element(bytes), latency(l) {
    for (const GradientRange& range : ranges) {
      done.push_back(backward_end);
      backward_end += range.backward_seconds;
    }
  }

  double seconds(std::size_t first, std::size_t last) const {
    return latency_seconds(latency, make_bucket(ranges, first, last).size * bytes_per_element);
  }
};

/// Earliest end of the first `last + 1` ranges, in some number of buckets, and the last bucket's start. An
/// earlier end of the buckets before is never worse for those after, so the best plan of a prefix
/// is part of a best plan.
struct Choice {
  double end = std::numeric_limits<double>::infinity();
  std::size_t first = 0;
};
using Row = std::vector<Choice>;  // by last range

/// Computes the row with one bucket more than these plans have. An empty row: they have none.
Row next_row(const CostModel& model, const Row& row) {
  Row next(model.ranges.size());
  for (std::size_t last = 0; last < next.size(); ++last) {
    for (std::size_t first = 0; first <= last; ++first) {
      if (row.empty() != (first == 0)) continue;  // one bucket begins with the first range: the first one
      const double left = first == 0 ? 0 : row[first - 1].end;
      const double end = std::max(model.done[last], left) + model.seconds(first, last);
      if (end < next[last].end) next[last] = {end, first};
    }
  }
  return next;
}

std::vector<Bucket> trace_back(std::span<const GradientRange> ranges, const std::vector<Row>& rows,
                               std::size_t buckets) {
  std::vector<Bucket> plan(buckets);
  std::size_t last = ranges.size() - 1;
  for (std::size_t i = buckets; i-- > 0;) {
    const std::size_t first = rows[i][last].first;
    plan[i] = make_bucket(ranges, first, last);
    last = first - 1;  // that of the bucket before; wraps after bucket 0, where it is not read
  }
  return plan;
}

double exposed_seconds_of(const CostModel& model, const Row& row) {
  return std::max(0.0, row.back().end - model.backward_end);
}

}  // namespace

BucketPlan plan_buckets_of_size(std::span<const GradientRange> ranges, std::size_t bytes_per_element,
                                std::size_t bucket_bytes) {
  check_ranges(ranges);
  BucketPlan plan;
  std::size_t first = 0;
  for (std::size_t last = 0; last < ranges.size(); ++last) {
    const Bucket bucket = make_bucket(ranges, first, last);
    if (bucket.size * bytes_per_element < bucket_bytes && last + 1 < ranges.size()) continue;
    plan.buckets.push_back(bucket);
    first = last + 1;
  }
  return plan;
}

BucketPlan plan_buckets_auto(std::span<const GradientRange> ranges, std::size_t bytes_per_element,
                             std::span<const LatencyPoint> latency, std::size_t buckets) {
  check_ranges(ranges);
  LOCKSTEP_CHECK(buckets <= ranges.size());
  if (ranges.empty()) return {};
  const CostModel model(ranges, bytes_per_element, latency);
  std::vector<Row> rows{next_row(model, {})};
  while (rows.size() < (buckets == 0 ? ranges.size() : buckets)) rows.push_back(next_row(model, rows.back()));
  std::size_t best = buckets == 0 ? 0 : buckets - 1;
  for (std::size_t row = best + 1; row < rows.size(); ++row)
    if (exposed_seconds_of(model, rows[row]) < exposed_seconds_of(model, rows[best]) - kSameSeconds)
      best = row;
  return {trace_back(ranges, rows, best + 1), exposed_seconds_of(model, rows[best])};
}

std::string BucketPlan::describe() const {
  std::string sizes;
  for (const Bucket& bucket : buckets)
    sizes += (sizes.empty() ? "" : " + ") + with_thousands(static_cast<std::int64_t>(bucket.size));
  return fmt::format("{}: {} parameters", counted(buckets.size(), "bucket"), sizes.empty() ? "0" : sizes);
}

std::string BucketPlan::forecast() const {
  if (exposed_seconds <= 0) return "";
  return fmt::format("expected wait for gradients after the backward pass: {:.0f} us a step",
                     exposed_seconds * 1e6);
}

// The shortest of a few rounds over all sizes; between the sizes, straight lines.

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t kSmallestBytes = 1024;
constexpr std::size_t kGrowth = 4;
constexpr int kLeastRounds = 3;  // the first one warms up connections and caches
constexpr int kMostRounds = 20;

/// Rank 0's clock decides for all.
bool agree_on_another_round(Communicator& comm, int rounds_done, bool time_left) {
  std::uint8_t go_on = rounds_done < kLeastRounds || (rounds_done < kMostRounds && time_left) ? 1 : 0;
  broadcast(comm, go_on);
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
  for (const std::size_t bytes : latency_sizes(max_bytes))
    points.push_back({bytes, std::numeric_limits<double>::max()});
  std::vector<std::int64_t> data(points.back().bytes / sizeof(std::int64_t));
  const auto start = Clock::now();
  for (int round = 0; agree_on_another_round(comm, round, Clock::now() - start < budget); ++round) {
    for (LatencyPoint& point : points) {
      const auto began = Clock::now();
      comm.all_reduce(std::span(data.data(), point.bytes / sizeof(std::int64_t)));
      // A machine that is busy with something else, or waits for a slow peer, only ever makes a time longer.
      point.seconds = std::min(point.seconds, seconds_since(began));
    }
  }
  broadcast(comm, std::span(points));
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
