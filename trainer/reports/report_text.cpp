// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document as curves of characters, and as a page.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/text_layout.hpp"
#include "trainer/reports/plot.hpp"
#include "trainer/reports/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Curves of the document.

struct CurveOfRun {
  std::size_t run = 0;                                 ///< its place in the document
  bool dashed = false;                                 ///< shows training
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

ChartOfRuns chart_of(const Json& report, const std::string& title, const char* what, bool is_share) {
  ChartOfRuns chart{title, is_share, {}};
  const Json& runs = report["runs"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string half :
         {"train", "validation", "test", "ema_validation", "ema_test", "swa_validation", "swa_test"}) {
      auto points = points_of(runs[i]["curves"]["epoch"], (half + what).c_str());
      if (half == "train" && points.empty() && !is_share)  // a run within its first epoch has steps alone
        points = points_of(runs[i]["curves"]["step"], "loss");
      if (!points.empty()) chart.curves.push_back({i, half == "train", std::move(points)});
    }
  }
  return chart;
}

std::string number_text(const Json& value, bool is_share) {
  if (!value.is_number()) return "-";
  return is_share ? fmt::format("{:.2f} %", 100 * value.get<double>())
                  : fmt::format("{:.4g}", value.get<double>());
}

// Curves of characters: one run in dots of braille, several as a character each.

char mark_of(const CurveOfRun& curve, bool several) {
  if (!several) return curve.dashed ? '.' : '*';
  return "123456789abcdefghijklmnopqrstuvwxyz"[curve.run % 35];
}

std::string drawn(const ChartOfRuns& chart, int columns, bool unicode, bool several) {
  constexpr int kRows = 12, kLabels = 10;
  Extent x, y;
  for (const CurveOfRun& curve : chart.curves)
    for (const auto& [step, value] : curve.points) x.add(step), y.add(value);
  const PlotStyle style{.unicode = unicode && !several};
  DotCanvas canvas(std::max(20, columns - kLabels), kRows, style);
  for (const CurveOfRun& curve : chart.curves) {
    std::optional<DotCanvas::Dot> before;
    for (const auto& [step, value] : curve.points) {
      const DotCanvas::Dot at{x.share(step) * (canvas.width() - 1),
                              (1 - y.share(value)) * (canvas.height() - 1)};
      canvas.line(before.value_or(at), at, mark_of(curve, several));
      before = at;
    }
  }
  std::string text = chart.title + "\n";
  for (int row = 0; row < kRows; ++row) {
    const std::string label = row == 0           ? number_text(y.high, chart.is_share)
                              : row == kRows - 1 ? number_text(y.low, chart.is_share)
                                                 : "";
    const std::string line = fmt::format("{:>{}} {}", label, kLabels - 2, canvas.row(row));
    text += without_spaces_behind(line) + "\n";
  }
  return text + fmt::format("{:>{}} step {} to {}\n", "", kLabels - 2, x.low, x.high);
}

}  // namespace

std::string report_in_characters(const Json& report, int columns, bool unicode) {
  constexpr int kWidest = 100;
  const bool several = report["runs"].size() > 1;
  std::string text;
  for (std::size_t i = 0; i < report["runs"].size(); ++i) {
    const Json& run = report["runs"][i];
    if (several) text += fmt::format("{}  ", mark_of({.run = i}, true));
    text +=
        fmt::format("{}: {}, step {}, accuracy {}, best {}, test loss {}\n", run["name"].get<std::string>(),
                    run["state"].get<std::string>(), run["steps"].dump(), number_text(run["accuracy"], true),
                    run["best"].is_null() ? "-" : number_text(run["best"]["accuracy"], true),
                    number_text(run["test_loss"], false));
  }
  for (const ChartOfRuns& chart :
       {chart_of(report, "loss", "_loss", false), chart_of(report, "accuracy", "_accuracy", true)})
    if (!chart.curves.empty()) text += "\n" + drawn(chart, std::min(columns, kWidest), unicode, several);
  return text;
}

// The page: style, scripts and the document are put into page/page.html. Nothing in the document becomes markup: it is
// JSON in ASCII, and the scripts make text nodes of it.

// Text that CMake made from trainer/reports/page. NOLINTNEXTLINE(readability-redundant-declaration): in one piece with it
extern const std::string_view kPageTemplate, kPageStyle, kPageScript;

namespace {

/// No byte of it ends a script element or begins another one, whatever the names in it are.
std::string json_in_html(const Json& json) {
  std::string text;
  for (const char c : json_text_in_ascii(json)) {
    const bool is_markup = c == '<' || c == '>' || c == '&';
    text += is_markup ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return text;
}

/// Takes the template up to the marker, and the text in its place.
void pass(std::string_view& rest, std::string_view marker, std::string_view text, std::string& page) {
  const std::size_t at = rest.find(marker);
  LOCKSTEP_CHECK(at != rest.npos);
  page += rest.substr(0, at);
  page += text;
  rest.remove_prefix(at + marker.size());
}

}  // namespace

std::string report_page(const Json& report) {
  std::string_view rest = kPageTemplate;
  std::string page;
  pass(rest, "/*STYLE*/", kPageStyle, page);
  pass(rest, "<!--STATIC-->", page_without_scripts(report), page);
  pass(rest, "/*CHARTS*/", json_in_html(charts_json()), page);
  pass(rest, "/*DATA*/", json_in_html(report), page);
  pass(rest, "/*SCRIPT*/", kPageScript, page);
  return page += rest;
}

}  // namespace lockstep
