// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A table of runs whose columns are rows of a table themselves.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/reports/runs.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

constexpr int kLevels = 3;
constexpr int kWidestName = 48, kNarrowestName = 16;

// Finding.

/// Names in a folder; none if it cannot be read, unless it is the one that was asked for.
std::vector<std::string> names_in(Env& env, const std::string& folder, bool asked_for) {
  const auto list = [&] { return env.list(folder); };
  return asked_for ? list() : or_if_unreadable(list, {});
}

/// Links are none, which may lead in circles; nor is what cannot be looked at.
bool is_folder(Env& env, const std::string& path) {
  return or_if_unreadable([&] { return env.entry(path).kind == EntryKind::kDirectory; }, false);
}

/// @returns whether there is any
bool add_runs_below(Env& env, const std::string& folder, int levels, std::vector<RunHistory>* runs) {
  bool found = false;
  for (const std::string& name : names_in(env, folder, levels == kLevels)) {
    if (name.starts_with('.')) continue;
    const std::string path = folder == "." ? name : fmt::format("{}/{}", folder, name);
    const bool is_run = has_parts_of_run(env, path);
    if (!is_run && !is_folder(env, path)) continue;
    const bool holds_some = !is_run && levels > 1 && add_runs_below(env, path, levels - 1, runs);
    if (is_run || (!holds_some && levels == kLevels)) runs->push_back(read_run_history(env, path));
    found |= is_run || holds_some;
  }
  return found;
}

// Columns.

struct Column {
  const char* name;
  int importance;  ///< that with the least goes first
  bool is_number;
  std::function<std::string(const RunHistory&)> text;
  bool where_told = false;  ///< only where a run has it
};

std::string epochs_text(const RunHistory& run) {
  if (run.status == RunStatus::kNoRun) return "-";
  const std::int64_t asked = run.epochs_asked(), done = run.epochs_done();
  return asked > 0 ? fmt::format("{}/{}", done, asked) : fmt::format("{}", done);
}

std::string best_text(const RunHistory& run) {
  if (!run.best_accuracy) return "-";
  const BestRecord& best = *run.best_accuracy;
  if (best.epoch > 0) return fmt::format("{} @{}", accuracy_text(best.value), best.epoch);
  if (best.step == run.step && run.status == RunStatus::kFinished) return accuracy_text(best.value) + " end";
  return fmt::format("{} @step:{}", accuracy_text(best.value), best.step);
}

std::string published_text(const RunHistory& run) {
  return !run.published ? "-" : *run.published ? "yes" : "no";
}

/// In local time: "11-23 13:09"; of another year "2025-11-23".
std::string when_text(std::optional<std::int64_t> when) {
  if (!when) return "-";
  const std::time_t time = *when, now = std::time(nullptr);
  std::tm local{}, today{};
  if (localtime_r(&time, &local) == nullptr || localtime_r(&now, &today) == nullptr) return "-";
  return local.tm_year == today.tm_year ? fmt::format("{:%m-%d %H:%M}", local)
                                        : fmt::format("{:%Y-%m-%d}", local);
}

const std::vector<Column>& columns_of_runs() {
  static const std::vector<Column> columns = {
      {"state", 99, false, [](const RunHistory& run) { return std::string(spelt(run.status)); }},
      {"epochs", 7, true, epochs_text},
      {"last %", 8, true, [](const RunHistory& run) { return accuracy_text(run.accuracy()); }},
      {"best % @", 9, true, best_text},
      {"ema %", 7, true, [](const RunHistory& run) { return accuracy_text(run.ema_accuracy); }, true},
      {"swa %", 7, true, [](const RunHistory& run) { return accuracy_text(run.swa_accuracy); }, true},
      {"loss", 6, true, [](const RunHistory& run) { return loss_text(run.loss()); }},
      {"seconds", 3, true, seconds_text},
      {"ranks", 2, true,
       [](const RunHistory& run) { return run.ranks > 0 ? std::to_string(run.ranks) : "-"; }},
      {"when", 4, false, [](const RunHistory& run) { return when_text(run.when); }},
      {"hash", 5, false,
       [](const RunHistory& run) {
         return run.weights_sha256.empty() ? "-"
                                           : clip_middle(printable_line(run.weights_sha256.substr(0, 8)), 16);
       }},
      {"published", 1, false, published_text}};
  return columns;
}

std::string table_text(const std::vector<RunHistory>& runs, const std::vector<const Column*>& columns,
                       int name_columns) {
  TableRows rows = {{"run"}};
  std::vector<std::size_t> right;
  for (const Column* column : columns) {
    if (column->is_number) right.push_back(rows[0].size());
    rows[0].emplace_back(column->name);
  }
  for (const RunHistory& run : runs) {
    rows.push_back({clip_middle(printable_line(run.path), name_columns)});
    for (const Column* column : columns) rows.back().push_back(column->text(run));
  }
  return align_columns(rows, right);
}

/// First names are clipped, then columns go.
std::string table_within(const std::vector<RunHistory>& runs, int width) {
  std::vector<const Column*> columns;
  for (const Column& column : columns_of_runs()) {
    const bool is_told =
        std::ranges::any_of(runs, [&](const RunHistory& run) { return column.text(run) != "-"; });
    if (is_told || !column.where_told) columns.push_back(&column);
  }
  std::string text = table_text(runs, columns, kWidestName);
  while (widest_line(text) > width) {
    text = table_text(runs, columns, kNarrowestName);
    const int free = width - widest_line(text);
    if (free >= 0) return table_text(runs, columns, kNarrowestName + free);
    if (columns.size() == 1) break;
    columns.erase(std::ranges::min_element(columns, {}, &Column::importance));
  }
  return text;
}

// Sorting.

struct SortKey {
  const char* name;
  bool is_largest_first;
  std::function<std::optional<double>(const RunHistory&)> number;
};

std::optional<double> best_of(const RunHistory& run) {
  return run.best_accuracy ? std::optional(run.best_accuracy->value) : std::nullopt;
}

std::optional<double> epochs_of(const RunHistory& run) {
  if (run.status == RunStatus::kNoRun) return std::nullopt;
  return static_cast<double>(run.epochs_done());
}

std::optional<double> ranks_of(const RunHistory& run) {
  return run.ranks > 0 ? std::optional(static_cast<double>(run.ranks)) : std::nullopt;
}

const std::vector<SortKey>& sort_keys() {
  static const std::vector<SortKey> keys = {
      {"name", false, {}},
      {"state", false, [](const RunHistory& run) { return static_cast<double>(run.status); }},
      {"epochs", true, epochs_of},
      {"accuracy", true, best_of},
      {"last", true, [](const RunHistory& run) { return run.accuracy(); }},
      {"loss", false, [](const RunHistory& run) { return run.loss(); }},
      {"seconds", false, [](const RunHistory& run) { return run.seconds; }},
      {"ranks", false, ranks_of},
      {"when", true, [](const RunHistory& run) { return std::optional<double>(run.when); }}};
  return keys;
}

void require_state(const std::string& name) {
  std::vector<std::string_view> states;
  for (int i = 0; i <= static_cast<int>(RunStatus::kNoRun); ++i)
    states.push_back(spelt(static_cast<RunStatus>(i)));
  if (std::ranges::find(states, name) == states.end())
    throw UsageError(fmt::format("--where: no run is {}{}; states are {}", quoted_text(name),
                                 did_you_mean(name, states), fmt::join(states, ", ")));
}

}  // namespace

std::vector<RunHistory> find_runs(Env& env, const std::string& directory) {
  std::string folder = directory;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::vector<RunHistory> runs;
  if (!env.exists(folder))
    throw MissingDataError(
        fmt::format("{}: there is no such folder; name the one that your runs are in, or start a run: "
                    "'lockstep train JOB.yaml' puts it into runs/",
                    directory));
  if (has_parts_of_run(env, folder)) return {read_run_history(env, folder)};
  add_runs_below(env, folder, kLevels, &runs);
  std::ranges::sort(runs, [](const RunHistory& a, const RunHistory& b) {
    return strverscmp(a.path.c_str(), b.path.c_str()) < 0;
  });
  return runs;
}

RunCondition parse_run_condition(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw UsageError(fmt::format(
        "--where {}: give key=value, such as train.optimizer.lr=0.05 or state=finished", quoted_text(text)));
  RunCondition condition{text.substr(0, equals), text.substr(equals + 1)};
  if (condition.key == "state") require_state(condition.value);
  if (condition.key == "state" || find_job_key(condition.key) != nullptr) return condition;
  constexpr std::string_view kState = "state";
  std::string hint = did_you_mean(condition.key, std::span(&kState, 1));
  if (hint.empty()) hint = key_hint(condition.key);
  throw UsageError(fmt::format("--where: a job has no key {}{}; 'lockstep help keys' lists them",
                               quoted_text(condition.key), hint));
}

bool meets(const RunHistory& run, const RunCondition& condition) {
  if (condition.key == "state") return spelt(run.status) == condition.value;
  const auto value = run.key(condition.key);
  if (!value || *value == condition.value) return value.has_value();
  const auto is_the_same = [&] {
    const Job asked =
        parse_job(run.job_text, run.path + "/job.yaml", {condition.key + "=" + condition.value});
    return texts_of_keys(asked)[condition.key] == *value;
  };
  return or_if_unreadable(is_the_same, false);
}

std::vector<std::string> run_sort_keys() {
  std::vector<std::string> names;
  for (const SortKey& key : sort_keys()) names.emplace_back(key.name);
  return names;
}

void sort_runs(std::vector<RunHistory>& runs, const std::string& key, bool reverse) {
  const auto chosen = std::ranges::find(sort_keys(), key, &SortKey::name);
  if (chosen == sort_keys().end()) throw InternalError("no such sort key: " + key);
  if (!chosen->number) {
    if (reverse) std::ranges::reverse(runs);
    return;
  }
  std::ranges::stable_sort(runs, {}, [&](const RunHistory& run) {
    const auto number = chosen->number(run);
    return number ? std::pair(0, reverse != chosen->is_largest_first ? -*number : *number)
                  : std::pair(1, 0.0);
  });
}

std::string accuracy_text(std::optional<double> accuracy) {
  return accuracy ? percent_text(*accuracy) : "-";
}

std::string loss_text(std::optional<double> loss) {
  return loss ? format_loss(*loss) : "-";
}

std::string seconds_text(const RunHistory& run) {
  const double seconds = run.seconds.value_or(-1);
  if (seconds < 0 || seconds > 1e12) return "-";
  return (run.from_step > 0 ? "> " : "") + format_time(seconds);
}

std::string runs_text(const std::vector<RunHistory>& runs, int columns) {
  if (runs.empty()) return "";
  std::string text = table_within(runs, columns);
  for (const RunHistory& run : runs) {
    const bool is_usual = run.status == RunStatus::kRunning || run.status == RunStatus::kInterrupted;
    if (run.remark.empty() || is_usual) continue;
    text += fold(fmt::format("{}: {}: {}", clip_middle(printable_line(run.path), kWidestName),
                             spelt(run.status), clip_middle(printable_line(run.remark), 300)),
                 columns) +
            "\n";
  }
  return text;
}

void to_json(nlohmann::ordered_json& json, const BestRecord& best) {
  json = {{"epoch", best.epoch}, {"step", best.step}, {"value", best.value}};
}

nlohmann::ordered_json to_json(const ToldEvaluation& evaluation) {
  return {{"test_loss", evaluation.test_loss},
          {"test_accuracy", evaluation.test_accuracy},
          {"validation_loss", evaluation.validation_loss},
          {"validation_accuracy", evaluation.validation_accuracy},
          {"ema_accuracy", evaluation.ema_accuracy},
          {"swa_accuracy", evaluation.swa_accuracy}};
}

nlohmann::ordered_json run_json(const RunHistory& run) {
  nlohmann::ordered_json checkpoints = nlohmann::ordered_json::array();
  for (auto entry = run.checkpoints.rbegin(); entry != run.checkpoints.rend(); ++entry)
    checkpoints.push_back(entry->step);
  nlohmann::ordered_json json = {{"run", run.path},
                                 {"state", spelt(run.status)},
                                 {"remark", run.remark},
                                 {"model", run.model},
                                 {"data", run.data},
                                 {"device", run.device},
                                 {"version", run.version},
                                 {"ranks", run.ranks},
                                 {"hosts", run.hosts},
                                 {"parameters", run.parameters},
                                 {"epochs", run.epochs_done()},
                                 {"epochs_asked", run.epochs_asked()},
                                 {"steps", run.step},
                                 {"train_loss", run.train_loss}};
  json.update(to_json(static_cast<const ToldEvaluation&>(run)));
  json.update({{"best_accuracy", run.best_accuracy},
               {"best_loss", run.best_loss},
               {"seconds", run.seconds},
               {"from_step", run.from_step},
               {"when", run.when},
               {"weights_sha256", run.weights_sha256},
               {"published_hash", run.published},
               {"checkpoints", checkpoints},
               {"damaged_lines", run.lines.damaged},
               {"job", run.job},
               {"config", run.config()}});
  return json;
}

nlohmann::ordered_json runs_json(const std::vector<RunHistory>& runs, const std::string& directory) {
  return {{"format", kRunsFormat}, {"directory", directory}, {"runs", json_list(runs, run_json)}};
}

}  // namespace lockstep
