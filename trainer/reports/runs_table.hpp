// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The runs below a folder, found, chosen, sorted and shown: `lockstep runs`.
#pragma once

#include "common/env.hpp"
#include "trainer/reports/run_history.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Version of the JSON that `runs` and `compare` print.
inline constexpr int kRunsFormat = 1;

/// All runs below `directory`, or that one if it is a run itself, in the order of their names (mnist-2 before
/// mnist-10). Three levels deep; links are followed on the way to a run and no further. A folder directly below
/// `directory` that holds no run is listed as what it is.
/// @throws MissingDataError  there is no such directory
std::vector<RunHistory> find_runs(Env& env, const std::string& directory);

/// What `--where` takes: "train.optimizer.lr=0.05", "state=finished".
struct RunCondition {
  std::string key, value;
};
/// @throws UsageError  it has no =, or there is no such key of a job
RunCondition parse_run_condition(const std::string& text);
/// Texts are compared, and what are numbers on both sides as numbers.
bool meets(const RunHistory& run, const RunCondition& condition);

/// What `--sort` takes: "name, state, accuracy, ..."
std::vector<std::string> run_sort_keys();
/// The best or newest first, otherwise ascending; runs that lack the number are last either way. Those that are equal
/// stay in their order.
void sort_runs(std::vector<RunHistory>& runs, const std::string& key, bool reverse);

/// A line for each run. Of the columns those that matter least are left out where `columns` are too few.
std::string runs_text(const std::vector<RunHistory>& runs, int columns);
nlohmann::ordered_json runs_json(const std::vector<RunHistory>& runs, const std::string& directory);
/// Of one run, epochs left out.
nlohmann::ordered_json run_json(const RunHistory& run);

// Cells that `compare` shows, too.

std::string accuracy_text(std::optional<double> accuracy);  ///< "98.02"; "-" where there is none
std::string loss_text(std::optional<double> loss);
std::string seconds_text(std::optional<double> seconds);
/// In local time: "11-23 13:09"; of another year "2025-11-23".
std::string when_text(std::optional<std::int64_t> when);

}  // namespace lockstep
