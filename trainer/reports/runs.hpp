// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs listed and compared.
#pragma once

#include "common/env.hpp"
#include "trainer/reports/plot.hpp"
#include "trainer/reports/run_history.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// The runs below a folder, found, chosen, sorted and shown: `lockstep runs`.

/// Version of the JSON that `runs` and `compare` print.
inline constexpr int kRunsFormat = 1;

/// Finds all runs below `directory`, or that one if it is a run itself, in natural order of names. (mnist-2
/// comes before mnist-10.) Three levels deep; links are followed on the way to a run and no further. A folder
/// directly below `directory` that holds no run is listed as what it is.
/// @throws MissingDataError  there is no such directory
std::vector<RunHistory> find_runs(Env& env, const std::string& directory);

/// Argument of `--where`: "train.optimizer.lr=0.05", "state=finished".
struct RunCondition {
  std::string key, value;
};
/// @throws UsageError  it has no =, or there is no such key of a job, or no such state
RunCondition parse_run_condition(const std::string& text);
/// Values are compared as training reads them: 5e-2 is 0.05, yes is true. One that the job refuses is no run's.
bool meets(const RunHistory& run, const RunCondition& condition);

/// Values of `--sort`: "name, state, accuracy, ..."
std::vector<std::string> run_sort_keys();
/// The best or newest first, otherwise ascending; runs that lack the number are last either way. Those that are equal
/// stay in their order.
void sort_runs(std::vector<RunHistory>& runs, const std::string& key, bool reverse);

/// A line for each run. Of the columns those that matter least are left out where `columns` are too few.
std::string runs_text(const std::vector<RunHistory>& runs, int columns);
nlohmann::ordered_json runs_json(const std::vector<RunHistory>& runs, const std::string& directory);
void to_json(nlohmann::ordered_json& json, const BestRecord& best);
nlohmann::ordered_json to_json(const ToldEvaluation& evaluation);
/// Summary of one run, epochs left out.
nlohmann::ordered_json run_json(const RunHistory& run);

// Cells that `compare` shows, too.

std::string accuracy_text(std::optional<double> accuracy);  ///< "98.02"; "-" where there is none
std::string loss_text(std::optional<double> loss);
std::string seconds_text(const RunHistory& run);  ///< "> 12.5 s" where they are those of the last start alone

// Comparison of runs: differing keys, curves, results, and the first step at which they differ: `lockstep
// compare`.

/// How the trail of a run compares with that of the first one.
struct TrailComparison {
  std::int64_t compared = 0;               ///< steps that both have and that are not damaged
  std::int64_t damaged = 0;                ///< records of both that are
  std::optional<std::int64_t> first_step;  ///< the first of them whose fingerprints differ
  std::string what;                        ///< first tensor that differs: "fc1.weight"; "" where none differs
  std::string why_not;                     ///< nothing can be compared: why; otherwise ""
};

/// A key of the job, and its value in each run; nothing where a run has no such key.
struct DifferingKey {
  std::string key;
  std::vector<std::optional<std::string>> values;
};

/// Those keys of job.yaml that not all runs have alike, in the order of their names, but for run.dir. Runs whose job
/// cannot be read do not count.
std::vector<DifferingKey> differing_keys(const std::vector<RunHistory>& runs);

struct RunComparison {
  std::vector<RunHistory> runs;  ///< marked A, B, ... in this order
  std::vector<DifferingKey> keys;
  std::vector<TrailComparison> trails;  ///< each run but the first, compared with the first
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
