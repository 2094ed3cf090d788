// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How long an all-reduce takes on this machine: measured when a job starts, the input of the bucket plan.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// 1 KiB, 4 KiB, ... and at last `max_bytes`.
std::vector<std::size_t> latency_sizes(std::size_t max_bytes);

/// Times int64 all-reduces of latency_sizes(), in rounds over all sizes until
/// the budget is used up, but at least three rounds. A collective call; every rank gets rank 0's shortest
/// times, so that all plan alike. One rank alone: empty, nothing costs anything.
std::vector<LatencyPoint> measure_latency(
    Communicator& comm, std::size_t max_bytes,
    std::chrono::duration<double> budget = std::chrono::milliseconds(15));

/// Linear between the points (ascending in bytes); beyond the last one along the last two; the first point's
/// below it. No points: 0.
double latency_seconds(std::span<const LatencyPoint> points, std::size_t bytes);

}  // namespace lockstep
