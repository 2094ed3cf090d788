// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Timing for benchmarks on machines that are shared: candidates take turns, and medians are compared.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::bench {

/// Seconds per call of each candidate: `rounds` times, every candidate runs in turn for at least
/// `seconds_per_turn`; the result is the median over the rounds. Each is run once before, to warm up.
std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& candidates, int rounds,
                                        double seconds_per_turn);

/// The middle value (mean of two for an even number). `values` must not be empty.
double median(std::vector<double> values);

}  // namespace lockstep::bench
