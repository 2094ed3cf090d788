// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document as text: CSV, Markdown, curves of characters, and SVG.
#include "common/plot.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/reports/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Curves of the document.

struct CurveOfRun {
  std::string name = {};                               ///< "mnist, test"
  std::size_t run = 0;                                 ///< its place in the document
  bool dashed = false;                                 ///< of training
  std::size_t kind = 0;                                ///< its colour where there is one run
  std::vector<std::pair<double, double>> points = {};  ///< (step, number), without those that are nothing
};

struct ChartOfRuns {
  std::string title;
  bool is_share = false;
  std::vector<CurveOfRun> curves;
};

std::vector<std::pair<double, double>> points_of(const Json& events, const char* column) {
  std::vector<std::pair<double, double>> points;
  if (!events.contains(column)) return points;
  for (std::size_t i = 0; i < events["step"].size(); ++i)
    if (events[column][i].is_number())
      points.emplace_back(events["step"][i].get<double>(), events[column][i].get<double>());
  return points;
}

/// What losses and accuracies are of, as keys begin, and each one's colour where there is one run.
constexpr auto kHalves = std::to_array<std::pair<std::string_view, std::size_t>>({{"train", 0},
                                                                                  {"validation", 2},
                                                                                  {"test", 1},
                                                                                  {"ema_validation", 4},
                                                                                  {"ema_test", 3},
                                                                                  {"swa_validation", 6},
                                                                                  {"swa_test", 5}});

ChartOfRuns chart_of(const Json& report, const std::string& title, const char* what, bool is_share) {
  ChartOfRuns chart{title, is_share, {}};
  const Json& runs = report["runs"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [prefix, kind] : kHalves) {
      const std::string half(prefix);
      auto points = points_of(runs[i]["curves"]["epoch"], (half + what).c_str());
      if (half == "train" && points.empty() && !is_share)  // a run within its first epoch has steps alone
        points = points_of(runs[i]["curves"]["step"], "loss");
      if (points.empty()) continue;
      std::string name = half;
      std::ranges::replace(name, '_', ' ');
      chart.curves.push_back({fmt::format("{}, {}", runs[i]["name"].get<std::string>(), name), i,
                              half == "train", kind, std::move(points)});
    }
  }
  return chart;
}

std::vector<ChartOfRuns> charts_of(const Json& report) {
  std::vector<ChartOfRuns> charts = {chart_of(report, "loss", "_loss", false),
                                     chart_of(report, "accuracy", "_accuracy", true)};
  std::erase_if(charts, [](const ChartOfRuns& chart) { return chart.curves.empty(); });
  return charts;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// 0 at the low end, 1 at the high one.
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

struct ChartFrame {
  Range x, y;

  explicit ChartFrame(const ChartOfRuns& chart) {
    for (const CurveOfRun& curve : chart.curves) {
      for (const auto& [step, value] : curve.points) {
        x.take(step);
        y.take(value);
      }
    }
  }
};

std::string number_text(double value, bool is_share) {
  return is_share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4g}", value);
}

// Numbers and texts of the document.

std::string share_text(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f} %", 100 * value.get<double>()) : "-";
}

std::string number_or_dash(const Json& value) {
  return value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-";
}

std::string csv_field(const std::string& given) {
  const std::string text = without_formula(given);
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// Text that Markdown shows as it is.
std::string markdown_text(std::string_view text) {
  std::string shown;
  for (const char c : printable_line(text)) {
    if (std::string_view("\\`*_{}[]<>#|!&").find(c) != std::string_view::npos) shown += '\\';
    shown += c;
  }
  return shown;
}

}  // namespace

std::string report_csv(const Json& report) {
  constexpr std::array kColumns = {"epoch",
                                   "step",
                                   "loss",
                                   "learning_rate",
                                   "samples_per_second",
                                   "gradient_norm",
                                   "train_loss",
                                   "train_accuracy",
                                   "train_seconds",
                                   "epoch_seconds",
                                   "validation_loss",
                                   "validation_accuracy",
                                   "test_loss",
                                   "test_accuracy",
                                   "ema_validation_loss",
                                   "ema_validation_accuracy",
                                   "ema_test_loss",
                                   "ema_test_accuracy",
                                   "swa_validation_loss",
                                   "swa_validation_accuracy",
                                   "swa_test_loss",
                                   "swa_test_accuracy",
                                   "step_seconds_p50",
                                   "step_seconds_p90",
                                   "step_seconds_p99",
                                   "exposed_seconds",
                                   "rank_skew",
                                   "slowest_rank",
                                   "resident_bytes",
                                   "peak_resident_bytes",
                                   "device_bytes",
                                   "peak_device_bytes"};
  std::string text = fmt::format("run,event,{}\n", fmt::join(kColumns, ","));
  for (const Json& run : report["runs"]) {
    for (const char* event : {"step", "epoch"}) {
      const Json& columns = run["curves"][event];
      for (std::size_t row = 0; row < columns["step"].size(); ++row) {
        text += csv_field(run["name"].get<std::string>()) + "," + event;
        for (const char* column : kColumns) {
          const bool is_there = columns.contains(column) && !columns[column][row].is_null();
          text += "," + (is_there ? columns[column][row].dump() : "");
        }
        text += "\n";
      }
    }
  }
  return text;
}

// Markdown.

namespace {

std::string classes_markdown(const Json& found) {
  std::string text =
      fmt::format("\n### Classes of {}\n\n| class | samples | right | precision | recall | F1 |\n",
                  markdown_text(found["data"].get<std::string>()));
  text += "|---|---:|---:|---:|---:|---:|\n";
  for (const Json& one : found["classes"]) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", markdown_text(one["name"].get<std::string>()),
                        one["samples"].dump(), one["correct"].dump(), share_text(one["precision"]),
                        share_text(one["recall"]), share_text(one["f1"]));
  }
  const bool are_outputs = found["scores"] == "outputs";
  text += fmt::format("\n### Surest mistakes\n\n| sample | class | answer | {} |\n|---:|---|---|---:|\n",
                      are_outputs ? "output" : "sure");
  for (const Json& one : found["mistakes"]) {
    const auto label = one["label"].get<std::size_t>(), answer = one["answer"].get<std::size_t>();
    const auto name = [&](std::size_t c) {
      return markdown_text(found["classes"][c]["name"].get<std::string>());
    };
    const std::string picture =
        one.contains("name") ? " " + markdown_text(one["name"].get<std::string>()) : "";
    text += fmt::format("| {}{} | {} | {} | {} |\n", one["sample"].dump(), picture, name(label), name(answer),
                        are_outputs ? fmt::format("{:.3f}", one["outputs"][answer].get<double>())
                                    : share_text(one["probabilities"][answer]));
  }
  return text;
}

std::string epochs_markdown(const Json& epochs) {
  if (epochs["step"].empty()) return "";
  const auto value = [&](const std::string& column, std::size_t row) {
    return epochs.contains(column) ? epochs[column][row] : Json(nullptr);
  };
  const std::string of = epochs.contains("validation_accuracy") ? "validation" : "test";
  std::string head = fmt::format("| epoch | step | train loss | {0} loss | {0} accuracy |", of);
  std::vector<std::string> averages = {"ema", "swa"};
  std::erase_if(averages,
                [&](const auto& average) { return !epochs.contains(average + "_" + of + "_accuracy"); });
  for (const std::string& average : averages) head += fmt::format(" {} accuracy |", average);
  std::string text = fmt::format("\n{}\n|", head);
  for (std::size_t i = 0; i < 5 + averages.size(); ++i) text += "---:|";
  text += "\n";
  for (std::size_t row = 0; row < epochs["step"].size(); ++row) {
    text += fmt::format("| {} | {} | {} | {} | {} |", number_or_dash(value("epoch", row)),
                        epochs["step"][row].dump(), number_or_dash(value("train_loss", row)),
                        number_or_dash(value(of + "_loss", row)), share_text(value(of + "_accuracy", row)));
    for (const std::string& average : averages)
      text += fmt::format(" {} |", share_text(value(average + "_" + of + "_accuracy", row)));
    text += "\n";
  }
  return text;
}

}  // namespace

namespace {

/// "3" of an epoch, "step 200" within one.
std::string place_of_best(const Json& best) {
  return best["epoch"] == 0 ? "step " + best["step"].dump() : best["epoch"].dump();
}

}  // namespace

std::string report_markdown(const Json& report) {
  std::string text = "| run | state | accuracy | best (epoch) | test loss | steps | weights |\n";
  text += "|---|---|---:|---:|---:|---:|---|\n";
  for (const Json& run : report["runs"]) {
    const Json& best = run["best"];
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(run["name"].get<std::string>()),
        run["state"].get<std::string>(), share_text(run["accuracy"]),
        best.is_null() ? "-" : fmt::format("{} ({})", share_text(best["accuracy"]), place_of_best(best)),
        number_or_dash(run["test_loss"]), run["steps"].dump(),
        markdown_text(run["sha256"].get<std::string>()));
  }
  for (const Json& run : report["runs"]) {
    text += fmt::format("\n## {}\n", markdown_text(run["name"].get<std::string>()));
    text += epochs_markdown(run["curves"]["epoch"]);
    if (run.contains("classes")) text += classes_markdown(run["classes"]);
    for (const Json& note : run["notes"]) text += "\n" + markdown_text(note.get<std::string>()) + "\n";
  }
  return text;
}

// Curves of characters: one run in dots of braille, several as a character each.

namespace {

char mark_of(const CurveOfRun& curve, bool several) {
  if (!several) return curve.dashed ? '.' : '*';
  return "123456789abcdefghijklmnopqrstuvwxyz"[curve.run % 35];
}

std::string drawn(const ChartOfRuns& chart, int columns, bool unicode, bool several) {
  constexpr int kRows = 12, kLabels = 10;
  const ChartFrame frame(chart);
  const PlotStyle style{.unicode = unicode && !several};
  DotCanvas canvas(std::max(20, columns - kLabels), kRows, style);
  for (const CurveOfRun& curve : chart.curves) {
    std::optional<DotCanvas::Dot> before;
    for (const auto& [step, value] : curve.points) {
      const DotCanvas::Dot at{frame.x.place(step) * (canvas.width() - 1),
                              (1 - frame.y.place(value)) * (canvas.height() - 1)};
      canvas.line(before.value_or(at), at, mark_of(curve, several));
      before = at;
    }
  }
  std::string text = chart.title + "\n";
  for (int row = 0; row < kRows; ++row) {
    const std::string label = row == 0           ? number_text(frame.y.high, chart.is_share)
                              : row == kRows - 1 ? number_text(frame.y.low, chart.is_share)
                                                 : "";
    const std::string line = fmt::format("{:>{}} {}", label, kLabels - 2, canvas.row(row));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + fmt::format("{:>{}} step {} to {}\n", "", kLabels - 2, frame.x.low, frame.x.high);
}

}  // namespace

std::string report_in_characters(const Json& report, int columns, bool unicode) {
  constexpr int kWidest = 100;
  const bool several = report["runs"].size() > 1;
  std::string text;
  for (std::size_t i = 0; i < report["runs"].size(); ++i) {
    const Json& run = report["runs"][i];
    const CurveOfRun of_run{.run = i};
    text += several ? fmt::format("{}  ", mark_of(of_run, true)) : "";
    text += fmt::format(
        "{}: {}, step {}, accuracy {}, best {}, test loss {}\n", run["name"].get<std::string>(),
        run["state"].get<std::string>(), run["steps"].dump(), share_text(run["accuracy"]),
        run["best"].is_null() ? "-" : share_text(run["best"]["accuracy"]), number_or_dash(run["test_loss"]));
  }
  for (const ChartOfRuns& chart : charts_of(report))
    text += "\n" + drawn(chart, std::min(columns, kWidest), unicode, several);
  return text;
}

// SVG: loss and accuracy, one below the other.

std::string report_svg(const Json& report) {
  constexpr double kLeft = 70, kWidth = 720, kHeight = 260, kTop = 40, kBetween = 360, kLegend = 16;
  constexpr std::array kColours = {"#2563eb", "#d9480f", "#0b8a6a", "#8b3fd1",
                                   "#c2255c", "#8a6d00", "#0e7490", "#64748b"};
  const auto charts = charts_of(report);
  const auto names = charts.empty() ? 0 : charts.front().curves.size();
  const double legend_top = kBetween * static_cast<double>(charts.size()) + 10;
  std::string svg = svg_sheet(kLeft + kWidth + 30, legend_top + kLegend * static_cast<double>(names) + 10);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const ChartFrame frame(charts[i]);
    const double top = kTop + kBetween * static_cast<double>(i), bottom = top + kHeight;
    svg += svg_label(kLeft, top - 14, "start", charts[i].title);
    for (int k = 0; k <= 4; ++k) {
      const double y = bottom - kHeight * k / 4, value = frame.y.low + (frame.y.high - frame.y.low) * k / 4;
      svg += svg_rule(kLeft, kLeft + kWidth, y) +
             svg_label(kLeft - 8, y + 4, "end", number_text(value, charts[i].is_share));
    }
    svg += svg_label(kLeft, bottom + 18, "start", fmt::format("step {}", frame.x.low));
    svg += svg_label(kLeft + kWidth, bottom + 18, "end", fmt::format("step {}", frame.x.high));
    for (std::size_t c = 0; c < charts[i].curves.size(); ++c) {
      const CurveOfRun& curve = charts[i].curves[c];
      const bool several = report["runs"].size() > 1;
      const std::string_view colour = kColours[(several ? curve.run : curve.kind) % kColours.size()];
      std::vector<std::pair<double, double>> line;
      for (const auto& [step, value] : curve.points)
        line.emplace_back(kLeft + kWidth * frame.x.place(step), bottom - kHeight * frame.y.place(value));
      svg += svg_line(line, colour, curve.dashed);
      if (i > 0) continue;
      const double y = legend_top + kLegend * static_cast<double>(c);
      svg += svg_line({{kLeft, y}, {kLeft + 24, y}}, colour, curve.dashed) +
             svg_label(kLeft + 32, y + 4, "start", curve.name);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace lockstep
