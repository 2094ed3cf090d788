// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables with a column for each run, or a line for each where they are too many.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/reports/runs.hpp"
#include "trainer/training/fingerprints.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace lockstep {
namespace {

constexpr int kWidestValue = 60, kWidestTold = 2000, kWidestReason = 300;

std::string mark_of(std::size_t run) {
  return {static_cast<char>('A' + run)};
}

// Trails.

/// Finds the first tensor whose fingerprints differ, in order of causes: inputs of a step come before the
/// gradient. "" where all are equal.
std::string first_difference(const TrailHead& head, const std::vector<std::uint64_t>& a,
                             const std::vector<std::uint64_t>& b) {
  const FingerprintLayout layout = head.layout();
  const auto name = [&](std::size_t t) {
    return t < layout.trained ? head.trained[t].name : head.kept[t - layout.trained].name;
  };
  const auto differ = [&](std::size_t slot) { return a[slot] != b[slot]; };
  for (std::size_t t = 0; t < layout.trained + layout.kept; ++t)
    if (differ(layout.weights(t))) return name(t);
  for (std::size_t buffer = 0; buffer < layout.buffers; ++buffer)
    for (std::size_t t = 0; t < layout.trained; ++t)
      if (differ(layout.optimizer(buffer, t))) return fmt::format("{} of {}", head.buffers[buffer], name(t));
  for (std::size_t t = 0; t < layout.trained; ++t)
    if (differ(layout.gradient(t))) return "the gradient of " + name(t);
  return "";
}

/// As many as a run can have left: metrics and checkpoints may lag behind.
std::int64_t most_records(const RunHistory& run) {
  constexpr std::int64_t kUntold = 100'000;
  const std::int64_t saved = run.checkpoints.empty() ? 0 : run.checkpoints.front().step;
  return std::min(std::max(run.step, saved), kMostTrailSteps) + kUntold;
}

void compare_records(const Trail& a, const Trail& b, TrailComparison* result) {
  for (std::int64_t i = 0; i < a.records(); ++i) {
    if (a.is_damaged(i)) continue;
    const TrailRecord in_a = a.record(i);
    const auto in_b = b.find(in_a.step);
    if (!in_b) continue;
    ++result->compared;
    result->what = first_difference(a.head(), in_a.fingerprints, in_b->fingerprints);
    if (result->what.empty()) continue;
    result->first_step = in_a.step;
    return;
  }
}

// Tables.

std::string cell_text(const std::optional<std::string>& value, int columns) {
  if (!value) return "-";
  return value->empty() ? "\"\"" : clip_middle(printable_line(*value), columns);
}

/// A cell for each run. Values are clipped, unless that would hide how two of them differ.
std::vector<std::string> cell_texts(const std::vector<std::optional<std::string>>& values) {
  std::vector<std::string> clipped, whole;
  for (const auto& value : values) {
    clipped.push_back(cell_text(value, kWidestValue));
    whole.push_back(cell_text(value, kWidestTold));
  }
  const std::set<std::string> told_apart(clipped.begin(), clipped.end()), all(whole.begin(), whole.end());
  return told_apart.size() == all.size() ? clipped : whole;
}

/// A row is a name and a value for each run. A column for each run; where they do not fit, a line for each.
std::string columns_or_lines(const std::string& title, const TableRows& rows, int columns) {
  TableRows table = {{title}};
  for (std::size_t run = 0; run + 1 < rows[0].size(); ++run) table[0].push_back(mark_of(run));
  table.insert(table.end(), rows.begin(), rows.end());
  std::string text = align_columns(table);
  if (widest_line(text) <= columns) return text + "\n";
  text = title + "\n";
  for (const auto& row : rows) {
    text += row[0] + "\n";
    for (std::size_t run = 0; run + 1 < row.size(); ++run)
      text += fold(fmt::format("  {}  {}", mark_of(run), row[run + 1]), columns) + "\n";
  }
  return text + "\n";
}

std::string keys_text(const RunComparison& comparison, int columns) {
  std::string unread;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    if (const RunHistory& run = comparison.runs[i]; run.job.empty())
      unread += fold(fmt::format("the job of {} could not be read: {}", mark_of(i),
                                 clip_middle(printable_line(run.why_no_job), kWidestReason)),
                     columns) +
                "\n";
  if (!unread.empty()) unread += "\n";
  if (comparison.keys.empty())
    return unread.empty() ? "their jobs are the same, but for run.dir\n\n" : unread;
  TableRows rows;
  for (const DifferingKey& key : comparison.keys) {
    rows.push_back({clip_middle(printable_line(key.key), kWidestValue)});
    for (std::string& value : cell_texts(key.values)) rows.back().push_back(std::move(value));
  }
  return unread + columns_or_lines("what their jobs say", rows, columns);
}

/// The samples that a run's best values and curves are of.
std::string judged_on(const RunHistory& run) {
  return run.validation_accuracy ? "validation" : "test";
}

/// "test", "validation", or of runs that differ in it "test (A), validation (B, C)".
std::string judged_on(const std::vector<RunHistory>& runs) {
  std::map<std::string, std::string> marks;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].accuracy()) continue;
    std::string& same = marks[judged_on(runs[i])];
    same += (same.empty() ? "" : ", ") + mark_of(i);
  }
  if (marks.size() < 2) return marks.empty() ? "test" : marks.begin()->first;
  return fmt::format("test ({}), validation ({})", marks["test"], marks["validation"]);
}

std::string numbers_text(const RunComparison& comparison, int columns) {
  TableRows rows;
  const auto row = [&](const char* name, const auto& value) {
    rows.push_back({name});
    for (const RunHistory& run : comparison.runs) rows.back().push_back(value(run));
  };
  row("state", [](const RunHistory& run) { return std::string(spelt(run.status)); });
  row("epochs", [](const RunHistory& run) { return with_thousands(run.epochs_done()); });
  row("steps", [](const RunHistory& run) { return with_thousands(run.step); });
  const std::string judged = judged_on(comparison.runs);
  const bool validated = judged != "test", mixed = judged.ends_with(')');
  const auto best_value = [&](const RunHistory& run, const std::optional<BestRecord>& best,
                              const auto& text) {
    if (!best) return std::string("-");
    return fmt::format("{} ({}{})", text(best->value), mixed ? judged_on(run) + ", " : "", best->place());
  };
  row("test accuracy, %", [](const RunHistory& run) { return accuracy_text(run.test_accuracy); });
  if (validated)
    row("validation accuracy, %",
        [](const RunHistory& run) { return accuracy_text(run.validation_accuracy); });
  for (const auto& [name, accuracy] : {std::pair{"accuracy of the ema, %", &RunHistory::ema_accuracy},
                                       std::pair{"accuracy of the swa, %", &RunHistory::swa_accuracy}})
    if (std::ranges::any_of(comparison.runs,
                            [of = accuracy](const RunHistory& run) { return (run.*of).has_value(); }))
      row(name, [of = accuracy](const RunHistory& run) { return accuracy_text(run.*of); });
  row("best accuracy, %",
      [&](const RunHistory& run) { return best_value(run, run.best_accuracy, accuracy_text); });
  row("test loss", [](const RunHistory& run) { return loss_text(run.test_loss); });
  row(validated ? "lowest loss" : "lowest test loss",
      [&](const RunHistory& run) { return best_value(run, run.best_loss, loss_text); });
  row("train loss", [](const RunHistory& run) { return loss_text(run.train_loss); });
  row("time", seconds_text);
  row("ranks", [](const RunHistory& run) { return run.ranks > 0 ? std::to_string(run.ranks) : "-"; });
  row("weights sha256", [](const RunHistory& run) {
    return run.weights_sha256.empty() ? "-" : printable_line(run.weights_sha256.substr(0, 16));
  });
  return columns_or_lines("what they came to", rows, columns);
}

std::string trail_sentence(const TrailComparison& trail) {
  if (!trail.why_not.empty()) return trail.why_not;
  if (!trail.first_step)
    return fmt::format("the same bits in all {} that both have", counted(trail.compared, "step"));
  const std::string before =
      trail.compared == 1 ? "from the first step that both have on"
                          : fmt::format("the same bits in {} before", counted(trail.compared - 1, "step"));
  return fmt::format("they part at step {}, first in {}; {}", with_thousands(*trail.first_step),
                     printable_line(trail.what), before);
}

/// @param value  a number of an EpochRecord: a member, or a method
std::vector<PlotCurve> curves_of(const std::vector<RunHistory>& runs, const auto& value, double factor) {
  std::vector<PlotCurve> curves;
  for (const RunHistory& run : runs) {
    PlotCurve& curve = curves.emplace_back(PlotCurve{mark_of(curves.size()).front(), {}});
    for (const EpochRecord& epoch : run.epochs)
      if (const std::optional<double> found = std::invoke(value, epoch))
        curve.points.emplace_back(static_cast<double>(epoch.epoch), factor * *found);
  }
  return curves;
}

/// True if a linear scale would hide small differences beside large ones.
bool spans_decades(const std::vector<PlotCurve>& curves) {
  constexpr double kMuch = 30;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PlotCurve& curve : curves)
    for (const auto& [x, y] : curve.points) low = std::min(low, y), high = std::max(high, y);
  return low > 0 && high / low > kMuch;
}

nlohmann::ordered_json epoch_json(const EpochRecord& epoch) {
  nlohmann::ordered_json json = {
      {"epoch", epoch.epoch}, {"step", epoch.step}, {"train_loss", epoch.train_loss}};
  json.update(to_json(static_cast<const ToldEvaluation&>(epoch)));
  return json;
}

/// Memory is that of both trails, as far as metrics and checkpoints tell of their steps, and a little more.
TrailComparison compare_trails(Env& env, const RunHistory& a, const RunHistory& b) {
  TrailComparison result;
  try {
    const Trail in_a = read_trail(env, a.path + "/" + kTrailFile, most_records(a));
    const Trail in_b = read_trail(env, b.path + "/" + kTrailFile, most_records(b));
    const TrailHead &of_a = in_a.head(), &of_b = in_b.head();
    result.damaged = std::ssize(in_a.damage()) + std::ssize(in_b.damage());
    if (of_a.trained != of_b.trained || of_a.kept != of_b.kept || of_a.buffers != of_b.buffers)
      result.why_not = "not compared: networks or optimisers have other tensors";
    else if (compare_records(in_a, in_b, &result); result.compared == 0)
      result.why_not = "not compared: there is no step that both have";
  } catch (const Error& error) {
    result.why_not = fmt::format("not compared: {}", error.what());
  }
  return result;
}

}  // namespace

std::vector<DifferingKey> differing_keys(const std::vector<RunHistory>& runs) {
  std::set<std::string> names;
  for (const RunHistory& run : runs)
    for (const auto& [name, value] : run.job) names.insert(name);
  std::vector<DifferingKey> keys;
  for (const std::string& name : names) {
    DifferingKey key{name, {}};
    std::set<std::optional<std::string>> told;
    for (const RunHistory& run : runs) {
      key.values.push_back(run.key(name));
      if (!run.job.empty()) told.insert(key.values.back());
    }
    if (told.size() > 1 && name != "run.dir") keys.push_back(std::move(key));  // no computation depends on it
  }
  return keys;
}

RunComparison compare_runs(Env& env, const std::vector<std::string>& paths) {
  if (paths.size() < 2 || paths.size() > kMostCompared)
    throw UsageError(fmt::format("compare takes 2 to {} runs, these are {}; 'lockstep runs' lists them",
                                 kMostCompared, paths.size()));
  RunComparison comparison;
  for (std::string path : paths) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (!has_parts_of_run(env, path)) throw MissingDataError(why_no_run(env, path));
    comparison.runs.push_back(read_run_history(env, path));
  }
  comparison.keys = differing_keys(comparison.runs);
  for (std::size_t i = 1; i < comparison.runs.size(); ++i)
    comparison.trails.push_back(compare_trails(env, comparison.runs[0], comparison.runs[i]));
  return comparison;
}

std::string comparison_text(const RunComparison& comparison, int columns) {
  std::string text;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const std::string path = clip_middle(printable_line(comparison.runs[i].path), 400);
    text += fold(fmt::format("{}  {}", mark_of(i), path), columns) + "\n";
  }
  text += "\n" + keys_text(comparison, columns) + numbers_text(comparison, columns);
  for (std::size_t i = 0; i < comparison.trails.size(); ++i) {
    const TrailComparison& trail = comparison.trails[i];
    const std::string damaged =
        trail.damaged > 0 ? fmt::format("; {} damaged", counted(trail.damaged, "record")) : "";
    text +=
        fold(fmt::format("A and {}: {}{}", mark_of(i + 1), trail_sentence(trail), damaged), columns) + "\n";
  }
  return text;
}

std::string comparison_curves(const RunComparison& comparison, const PlotStyle& style) {
  std::string marks, text;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    marks += " " + in_curve_colour(mark_of(i), i, style);
  const std::string of = judged_on(comparison.runs);
  const auto add = [&](const char* what, const auto& value, bool is_loss = false) {
    const auto curves = curves_of(comparison.runs, value, is_loss ? 1 : 100);
    PlotStyle its_style = style;
    its_style.log_y = is_loss && spans_decades(curves);
    const std::string picture = plot(curves, its_style);
    if (picture.empty()) return;
    text += fmt::format("\n{} {}{}, by epoch:{}\n{}", of, what, its_style.log_y ? " (logarithmic)" : "",
                        marks, picture);
  };
  add("accuracy, %", &EpochRecord::accuracy);
  add("accuracy of the ema, %", &EpochRecord::ema_accuracy);
  add("accuracy of the swa, %", &EpochRecord::swa_accuracy);
  add("loss", &EpochRecord::loss, true);
  return text;
}

nlohmann::ordered_json comparison_json(const RunComparison& comparison) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array(), keys = nlohmann::ordered_json::object(),
                         trails = nlohmann::ordered_json::array();
  for (const RunHistory& run : comparison.runs) {
    runs.push_back(run_json(run));
    runs.back()["curve"] = json_list(run.epochs, epoch_json);
  }
  for (const DifferingKey& key : comparison.keys) keys[key.key] = key.values;
  for (std::size_t i = 0; i < comparison.trails.size(); ++i) {
    const TrailComparison& trail = comparison.trails[i];
    trails.push_back({{"runs", {comparison.runs[0].path, comparison.runs[i + 1].path}},
                      {"steps_compared", trail.compared},
                      {"records_damaged", trail.damaged},
                      {"first_step", trail.first_step},
                      {"tensor", trail.what},
                      {"why_not", trail.why_not}});
  }
  return {{"format", kRunsFormat}, {"runs", runs}, {"keys", keys}, {"trails", trails}};
}

}  // namespace lockstep
