// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From run folders to the JSON document: curves as columns, everything else as the run has written it.
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/reports/runs.hpp"
#include "trainer/run/run_directory.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostEvents = 200, kMostLogLines = 100, kMostRanks = 64;
constexpr std::uint64_t kLogBytes = 256 << 10, kVerdictBytes = 256 << 10;
constexpr int kWidestVerdict = 4096;

// Curves: the numbers of all events of one name, column by column.

struct Columns {
  std::vector<std::string> names;        ///< the first one decides which rows are peaks
  std::vector<std::int64_t> steps = {};  ///< [row]
  std::vector<double> seconds = {};  ///< [row], since the run's first line; kNothing: the line has no time
  std::vector<std::vector<double>> values;  ///< [column][row]; kNothing: the event does not say

  explicit Columns(std::vector<std::string> of) : names(std::move(of)), values(names.size()) {}

  void add(const MetricsEvent& event, double since_start) {
    seconds.push_back(since_start);
    steps.push_back(event.integer("step").value_or(0));
    for (std::size_t c = 0; c < names.size(); ++c)
      values[c].push_back(event.number(names[c]).value_or(kNothing));
  }
  /// Fills the gaps of the last row where it is of the same step; otherwise adds a row.
  void complete(const MetricsEvent& event, double since_start) {
    if (steps.empty() || steps.back() != event.integer("step")) return add(event, since_start);
    for (std::size_t c = 0; c < names.size(); ++c)
      if (std::isnan(values[c].back())) values[c].back() = event.number(names[c]).value_or(kNothing);
  }
  const std::vector<double>& of(std::string_view name) const {
    return values[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin())];
  }
};

/// Selects the rows to keep: all, up to `most`. Otherwise the lowest and the highest of each of `most` / 2 neighbourhoods.
std::vector<std::size_t> rows_kept(const std::vector<double>& values, std::size_t most) {
  const std::size_t parts = most / 2, all = values.size();
  std::vector<std::size_t> rows(all <= most ? all : 0);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (all <= most) return rows;
  const auto less = [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; };
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(all * part / parts);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(all * (part + 1) / parts);
    const auto [low, high] = std::minmax_element(begin, end, less);
    rows.push_back(static_cast<std::size_t>(low - values.begin()));
    rows.push_back(static_cast<std::size_t>(high - values.begin()));
  }
  rows.push_back(0);
  rows.push_back(all - 1);
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// As the run wrote it: counts without a point.
Json number_json(double value) {
  constexpr double kExact = 1e15;
  if (std::isnan(value)) return nullptr;
  if (value == std::trunc(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

/// {"step": [...], "loss": [...], "seconds": [...]}; a column of which nothing is known is not there.
Json curve_json(const Columns& columns, std::size_t most) {
  const auto rows = rows_kept(columns.values.front(), most);
  Json json = {{"step", Json::array()}};
  for (const std::size_t row : rows) json["step"].push_back(columns.steps[row]);
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    if (std::ranges::all_of(values, [](double value) { return std::isnan(value); })) return;
    Json list = Json::array();
    for (const std::size_t row : rows) list.push_back(number_json(values[row]));
    json[name] = std::move(list);
  };
  for (std::size_t c = 0; c < columns.names.size(); ++c) add(columns.names[c], columns.values[c]);
  add("seconds", columns.seconds);
  return json;
}

/// Adds each number of a list to that of the same rank. A start on other ranks counts for those that it has.
void add_up(std::string_view list, std::vector<double>& sums) {
  const Json numbers = Json::parse(list, nullptr, /*allow_exceptions=*/false);
  if (!numbers.is_array()) return;
  sums.resize(std::max(sums.size(), std::min(numbers.size(), kMostRanks)));
  for (std::size_t i = 0; i < std::min(numbers.size(), kMostRanks); ++i)
    if (numbers[i].is_number()) sums[i] += numbers[i].get<double>();
}

/// Names of the columns of events: these, and all others that charts draw.
std::vector<std::string> columns_of(const std::string& events, std::vector<std::string> names) {
  for (const Json& chart : charts_json())
    for (const Json& curve : chart["curves"]) {
      const std::string column = curve["column"];
      if (curve["events"] == events && std::ranges::find(names, column) == names.end())
        names.push_back(column);
    }
  return names;
}

/// Columns of a run's events.
struct RunEvents {
  Columns step{columns_of("step", {"loss"})};
  Columns epoch{columns_of("epoch", {"test_loss", "epoch", "train_seconds", "epoch_seconds", "train_samples",
                                     "samples_per_second", "learning_rate", "test_samples", "slowest_rank"})};
  std::vector<double> busy, exposed;  ///< seconds of each rank, over the epochs
  Json start = nullptr, end = nullptr, others = Json::array();
  std::int64_t not_kept = 0;  ///< others, beyond kMostEvents
  double first = kNothing;    ///< seconds since 1970, of the first line that has a time

  void add(const MetricsEvent& event) {
    const std::string_view name = event.name();
    std::string_view time = event.raw("time");
    if (time.starts_with('"')) time = time.substr(1, time.size() - 2);
    const double now = seconds_since_1970(time).value_or(kNothing);
    if (std::isnan(first)) first = now;
    const double since_start = std::round(1000 * (now - first)) / 1000;
    if (name == "step") return step.add(event, since_start);
    if (name == "evaluation") return epoch.add(event, since_start);
    if (name == "epoch") {
      add_up(event.raw("rank_busy_seconds"), busy);
      add_up(event.raw("rank_exposed_seconds"), exposed);
      return epoch.add(event, since_start);
    }
    if (name == "loss") return;
    Json json = event.json();
    if (name == "start") {
      start = std::move(json);
    } else if (name == "end") {
      epoch.complete(event, since_start);
      end = std::move(json);
    } else if (others.size() < kMostEvents) {
      others.push_back(std::move(json));
    } else {
      ++not_kept;
    }
  }
};

Json ranks_json(const RunEvents& events) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < std::min(events.busy.size(), events.exposed.size()); ++i)
    ranks.push_back({{"busy_seconds", events.busy[i]}, {"exposed_seconds", events.exposed[i]}});
  return ranks;
}

/// Verdicts of the watchdog: which rank was lost, and why. A long one loses its middle, not the advice at its end.
Json verdicts_json(Env& env, const std::string& directory) {
  return json_list(verdict_files(env, directory), [&](const std::string& path) {
    return clip_middle(printable(as_text(env.read_first(path, kVerdictBytes))), kWidestVerdict);
  });
}

/// Samples by seconds of all epochs that tell their speed. (Both are since a start of the run: an epoch's samples may
/// be those of several starts.)
Json mean_speed(const Columns& epochs) {
  double samples = 0, seconds = 0;
  for (std::size_t i = 0; i < epochs.steps.size(); ++i) {
    const double rate = epochs.of("samples_per_second")[i], its_seconds = epochs.of("train_seconds")[i];
    if (!(rate > 0) || !(its_seconds > 0)) continue;
    samples += rate * its_seconds;
    seconds += its_seconds;
  }
  return seconds > 0 ? Json(samples / seconds) : Json(nullptr);
}

/// The lines that are no epoch's, the newest ones: starts, stops, memory, speed of ranks.
Json log_lines(Env& env, const std::string& directory) {
  Json lines = Json::array();
  const auto read = [&] { return env.read_last(directory + "/log/rank-0.log", kLogBytes + 1); };
  std::string text(as_text(or_if_unreadable(read, {})));            // a run need not have a log
  if (text.size() > kLogBytes) text.erase(0, text.find('\n') + 1);  // its first line may be cut
  std::istringstream log(std::move(text));
  for (std::string line; std::getline(log, line);)
    if (line.find("] epoch ") == line.npos && line.find("] loss: ") == line.npos && !line.empty())
      lines.push_back(printable_line(line));
  if (lines.size() > kMostLogLines)
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(lines.size() - kMostLogLines));
  return lines;
}

/// "runs/mnist/" → "mnist"; "." → the name of the directory.
std::string name_of(const std::string& directory) {
  std::error_code error;
  const auto path = std::filesystem::absolute(directory, error).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

/// Accuracies are those that the run is judged by, as epochs, evaluations and its end tell them.
Json checkpoints_json(const RunHistory& run, const Columns& epochs) {
  return json_list(run.checkpoints, [&](const CheckpointEntry& entry) -> Json {
    Json accuracy = nullptr;
    const auto row = std::ranges::find(epochs.steps, entry.step) - epochs.steps.begin();
    for (const char* name : {"test_accuracy", "validation_accuracy"})
      if (row < std::ssize(epochs.steps) && !std::isnan(at(epochs.of(name), row)))
        accuracy = at(epochs.of(name), row);
    return {{"step", entry.step}, {"accuracy", std::move(accuracy)}};
  });
}

Json run_json(Env& env, const RunHistory& run, const RunEvents& events, std::size_t points) {
  const auto best = run.best_accuracy;
  Json json = {
      {"name", name_of(run.path)},
      {"directory", run.path},
      {"state", spelt(run.status)},
      {"steps", run.step},
      {"accuracy", run.test_accuracy},
      {"test_loss", run.test_loss},
      {"best", nullptr},
      {"seconds", run.seconds},
      {"from_step", run.from_step},
      {"samples_per_second", mean_speed(events.epoch)},
      {"sha256", run.weights_sha256},
      {"published", run.published},
      {"trail", env.exists(run.path + "/" + kTrailFile) ? "kept" : "none"},
      {"start", events.start},
      {"end", events.end},
      {"steps_logged", events.step.steps.size()},
      {"curves", {{"step", curve_json(events.step, points)}, {"epoch", curve_json(events.epoch, points)}}},
      {"ranks", ranks_json(events)},
      {"verdicts", verdicts_json(env, run.path)},
      {"events", events.others},
      {"checkpoints", checkpoints_json(run, events.epoch)},
      {"log", log_lines(env, run.path)},
      {"job", run.job_text},
      {"why_no_job", run.why_no_job},
      {"notes", Json::array()}};
  json["steps_drawn"] = json["curves"]["step"]["step"].size();
  if (best)
    json["best"] = {{"epoch", best->epoch},
                    {"step", best->step},
                    {"accuracy", best->value},
                    {"of", run.validation_accuracy ? "validation" : "test"}};
  if (!run.remark.empty()) json["notes"].push_back(run.remark);
  if (events.not_kept > 0) json["notes"].push_back(fmt::format("{} more events", events.not_kept));
  return json;
}

}  // namespace

Json collect_report(Env& env, const std::vector<std::string>& runs, const ReportOptions& options) {
  constexpr std::size_t kFewestPoints = 100,
                        kMostPoints = 4000;  // a curve's; all runs have ten times as many
  const std::size_t points =
      std::clamp(10 * kMostPoints / std::max<std::size_t>(runs.size(), 1), kFewestPoints, kMostPoints);
  Json report = {{"format", kReportFormat},
                 {"version", LOCKSTEP_VERSION},
                 {"made", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
                 {"runs", Json::array()}};
  std::vector<RunHistory> histories;
  for (const std::string& directory : runs) {
    RunEvents events;
    const RunHistory& run = histories.emplace_back(
        read_run_history(env, directory, [&](const MetricsEvent& event) { events.add(event); }));
    if (run.status == RunStatus::kNoRun) throw MissingDataError(why_no_run(env, directory));
    Json& json = report["runs"].emplace_back(run_json(env, run, events, points));
    if (options.models && !run.checkpoints.empty()) add_model(json, directory, options);
  }
  for (const DifferingKey& key : differing_keys(histories))
    report["differing_keys"].push_back({{"key", key.key}, {"values", key.values}});
  return report;
}

void write_report_of_run(const std::string& directory, const TrainTestData& data, int threads) noexcept {
  constexpr std::chrono::milliseconds kForClasses{500};
  constexpr int kMostClassesInARun = 2'000;  // 4 million numbers, and a page of 9 MB
  try {
    const ReportOptions options{.loaded = &data,
                                .threads = threads,
                                .class_seconds = kForClasses,
                                .most_classes = kMostClassesInARun};
    replace_file(Env::posix(), directory + "/report.html",
                 report_page(collect_report(Env::posix(), {directory}, options)));
  } catch (const std::exception& error) {
    print_error(fmt::format("warning: no report.html was written: {}", error.what()));
  }
}

}  // namespace lockstep
