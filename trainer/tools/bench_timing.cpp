// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A turn is as many calls as its seconds hold.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/tools/bench.hpp"

#include <algorithm>

namespace lockstep::bench {
namespace {

double time_turn(const std::function<void()>& candidate, double seconds) {
  const auto start = Clock::now();
  double elapsed = 0;
  long calls = 0;
  while (elapsed < seconds) {
    candidate();
    ++calls;
    elapsed = seconds_since(start);
  }
  return elapsed / static_cast<double>(calls);
}

}  // namespace

std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& candidates, int rounds,
                                        double seconds_per_turn) {
  std::vector<std::vector<double>> times(candidates.size());
  for (const auto& candidate : candidates) candidate();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      times[i].push_back(time_turn(candidates[i], seconds_per_turn));
    }
  }
  std::vector<double> medians;
  medians.reserve(times.size());
  for (auto& series : times) medians.push_back(median(std::move(series)));
  return medians;
}

double median(std::vector<double> values) {
  LOCKSTEP_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace lockstep::bench
