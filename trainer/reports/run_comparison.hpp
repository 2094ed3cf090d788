// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs beside each other: what their jobs say differently, their curves, what they came to, and the first step at
/// which they parted: `lockstep compare`.
#pragma once

#include "common/env.hpp"
#include "common/plot.hpp"
#include "trainer/reports/run_history.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// How the trail of a run compares with that of the first one.
struct TrailComparison {
  std::int64_t compared = 0;               ///< steps that both have and that are not damaged
  std::optional<std::int64_t> first_step;  ///< the first of them whose fingerprints differ
  std::string what;                        ///< of which tensor first: "fc1.weight"; "" where none differs
  std::string why_not;                     ///< nothing can be compared: why; otherwise ""
};

/// Memory is that of both trails, as far as metrics and checkpoints tell of their steps, and a little more.
TrailComparison compare_trails(Env& env, const RunHistory& a, const RunHistory& b);

/// A key of the job, and its value in each run; nothing where a run has no such key.
struct DifferingKey {
  std::string key;
  std::vector<std::optional<std::string>> values;
};

struct RunComparison {
  std::vector<RunHistory> runs;  ///< marked A, B, ... in this order
  std::vector<DifferingKey> keys;
  std::vector<TrailComparison> trails;  ///< of each run but the first, with the first
};

inline constexpr std::size_t kMostCompared = 26;

/// @throws MissingDataError  one of the folders holds no run; UsageError  fewer than two, or more than kMostCompared
RunComparison compare_runs(Env& env, const std::vector<std::string>& paths);

/// Tables and sentences, without the curves.
std::string comparison_text(const RunComparison& comparison, int columns);
/// Test accuracy and test loss over the epochs. Holds marks and numbers only, so it may go to write_out() as it is.
std::string comparison_curves(const RunComparison& comparison, const PlotStyle& style);
nlohmann::ordered_json comparison_json(const RunComparison& comparison);

}  // namespace lockstep
