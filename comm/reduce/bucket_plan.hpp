// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the gradient arena is cut into buckets: a pure function of sizes and costs, equal on every rank.
#pragma once

#include "comm/communicator.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A part of the gradient in the order in which backward finishes it: one layer's weight and bias.
struct GradientRange {
  std::size_t offset = 0;       ///< in the arena, in elements
  std::size_t size = 0;         ///< in elements
  double backward_seconds = 0;  ///< estimated time of backward from this range's completion to the next one's
};

/// Latency of an all-reduce as measured on this machine: seconds for a few sizes, linear in between.
struct LatencyPoint {
  std::size_t bytes = 0;
  double seconds = 0;
};

/// A bucket is a contiguous range of the arena: ranges [first_range, last_range] in backward order.
struct Bucket {
  std::size_t offset = 0, size = 0;  ///< elements in the arena
  std::size_t first_range = 0, last_range = 0;
};

struct BucketPlan {
  std::vector<Bucket> buckets;   ///< in backward order: the order in which they leave
  double exposed_seconds = 0;    ///< predicted communication left after backward ended; 0 for fixed sizes
  std::string describe() const;  ///< "2 buckets: 21,580 + 260 parameters"
  std::string forecast() const;  ///< the prediction in words; empty for fixed sizes
};

/// Buckets of at least `bucket_bytes` (the last may be smaller), like PyTorch's DDP.
BucketPlan plan_buckets_of_size(std::span<const GradientRange> ranges, std::size_t bytes_per_element,
                                std::size_t bucket_bytes);
/// The plan with the least predicted exposed time (fewest buckets among equals). Buckets leave when their
/// last range is done, one after another, each taking latency(bytes).
/// @param buckets  how many, at most one for each range; 0: the best number
BucketPlan plan_buckets_auto(std::span<const GradientRange> ranges, std::size_t bytes_per_element,
                             std::span<const LatencyPoint> latency, std::size_t buckets = 0);

// How long an all-reduce takes on this machine: measured when a job starts, the input of the bucket plan.

/// 1 KiB, 4 KiB, ... and at last `max_bytes`.
std::vector<std::size_t> latency_sizes(std::size_t max_bytes);

/// Times int64 all-reduces of latency_sizes(), in rounds over all sizes until
/// the budget is used up. It does at least three rounds. A collective call; every rank gets rank 0's shortest
/// times, so that all plan alike. One rank alone: empty, nothing costs anything.
std::vector<LatencyPoint> measure_latency(
    Communicator& comm, std::size_t max_bytes,
    std::chrono::duration<double> budget = std::chrono::milliseconds(15));

/// Linear between the points (ascending in bytes); beyond the last one along the last two; the first point's
/// below it. No points: 0.
double latency_seconds(std::span<const LatencyPoint> points, std::size_t bytes);

}  // namespace lockstep
