// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Curves of a page: their list for the script that draws them, and SVG for browsers that run none.
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/reports/plot.hpp"
#include "trainer/reports/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<std::pair<double, double>>;

/// A column of a run's events, and its look beside the others of its chart. Colours and looks are those of style.css.
Json make_curve(const std::string& name, const char* look, int colour, const char* events,
                const std::string& column) {
  return {{"name", name}, {"look", look}, {"colour", colour}, {"events", events}, {"column", column}};
}

/// @param unit  "%": shares from 0 to 1
Json make_chart(const char* title, const char* unit, double scale, const std::vector<Json>& curves) {
  return {{"title", title}, {"unit", unit}, {"scale", scale}, {"curves", curves}};
}

/// Curves of training, held-out samples and the test set. @param of  "loss", "accuracy"
std::vector<Json> measured(const std::string& of, const std::string& of_step) {
  std::vector<Json> curves = {make_curve("train, a step", "thin", 0, "step", of_step),
                              make_curve("train", "dashed", 0, "epoch", "train_" + of),
                              make_curve("validation", "dotted", 2, "epoch", "validation_" + of),
                              make_curve("test", "", 1, "epoch", "test_" + of)};
  for (const auto& [average, colour] : {std::pair("ema", 3), std::pair("swa", 4)})
    for (const auto& [part, look] : {std::pair("validation", "dotted"), std::pair("test", "")})
      curves.push_back(make_curve(fmt::format("{}, {}", average, part), look, colour, "epoch",
                                  fmt::format("{}_{}_{}", average, part, of)));
  return curves;
}

// Text in markup.

std::string escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "<>&\"";
  constexpr std::array kInText = {"&lt;", "&gt;", "&amp;", "&quot;"};
  std::string html;
  for (const char c : printable_line(text)) {
    const std::size_t at = kMarkup.find(c);
    at == kMarkup.npos ? html += c : html += kInText[at];
  }
  return html;
}

/// A member that is a text or a number; "" for anything else.
std::string text_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_integer()) return with_thousands(found->get<std::int64_t>());
  return found->is_number() ? fmt::format("{:.6g}", found->get<double>()) : "";
}

std::string number_text(double value, std::string_view unit) {
  constexpr double kThousands = 1000, kMillions = 1e6;
  if (unit == "%") return fmt::format("{:.4g}%", 100 * value);
  const double size = std::abs(value);
  return size >= kThousands && size < kMillions ? with_thousands(std::llround(value))
                                                : fmt::format("{:.4g}", value);
}

// Curves.

constexpr double kWidth = 480, kHeight = 264, kLeft = 52, kRight = 468, kTop = 10, kBottom = 238;
constexpr std::size_t kMostRunsDrawn = 8, kMostPointsDrawn = 240, kMostDots = 60;

const Json* column_of(const Json& run, std::string_view events, std::string_view column) {
  const auto curves = run.find("curves");
  if (curves == run.end() || !curves->contains(events)) return nullptr;
  const Json& kind = (*curves)[std::string(events)];
  const auto found = kind.find(column);
  return found == kind.end() ? nullptr : &*found;
}

Points thinned(const Points& points) {
  Points kept;
  const std::size_t every = points.size() / kMostPointsDrawn + 1;
  for (std::size_t i = 0; i < points.size(); i += every) kept.push_back(points[i]);
  if (!points.empty() && kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

std::string colour(int number) {
  return fmt::format("var(--c{})", number);
}

struct Line {
  std::string look;
  int colour;
  Points points;
};

/// The spans of both axes; steps are those of all charts.
struct Scales {
  Extent x, y;

  double left(double value) const { return kLeft + (kRight - kLeft) * x.share(value); }
  double down(double value) const { return kBottom - (kBottom - kTop) * y.share(value); }
};

Extent steps_of(const Json& runs) {
  Extent steps;
  for (std::size_t run = 0; run < std::min(runs.size(), kMostRunsDrawn); ++run)
    for (const char* events : {"step", "epoch"})
      if (const Json* const column = column_of(runs[run], events, "step");
          column != nullptr && !column->empty())
        steps.add(column->front().get<double>()), steps.add(column->back().get<double>());
  return steps.low < steps.high ? steps : Extent{steps.low - 1, steps.high + 1};
}

Extent values_of(const std::vector<Line>& lines, std::string_view unit) {
  constexpr double kMargin = 0.06;
  Extent y;
  for (const Line& line : lines)
    for (const auto& point : line.points) y.add(point.second);
  const double margin =
      y.high > y.low ? kMargin * (y.high - y.low) : (y.high == 0 ? 1 : std::abs(y.high) / 2);
  const double top = unit == "%" && y.high <= 1 ? std::min(1.0, y.high + margin) : y.high + margin;
  return {y.low >= 0 ? std::max(0.0, y.low - margin) : y.low - margin, top};
}

std::string axes(const Scales& scales, std::string_view unit) {
  constexpr int kTicksUp = 5, kTicksAcross = 6;
  std::string svg;
  for (const double y : ticks(scales.y.low, scales.y.high, kTicksUp)) {
    svg += fmt::format(R"(<path class="rule" d="M{} {:.1f}H{}"/>)", kLeft, scales.down(y), kRight);
    svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8,
                       scales.down(y) + 4, number_text(y, unit));
  }
  for (const double x : ticks(scales.x.low, scales.x.high, kTicksAcross))
    if (x == std::floor(x))
      svg += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", scales.left(x),
                         kHeight - 8, number_text(x, ""));
  return svg + fmt::format(R"(<path class="axis" d="M{} {}H{}"/>)", kLeft, kBottom, kRight);
}

std::string drawn(const Line& line, const Scales& scales) {
  std::string path, dots;
  for (const auto& [x, y] : line.points) {
    const double left = scales.left(x), down = scales.down(y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", left, down);
    if (line.points.size() <= kMostDots)
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.4"/>)", left, down);
  }
  return fmt::format(R"(<g style="--k:{}"><path class="curve {}" d="{}"/>{}</g>)", colour(line.colour),
                     line.look, path, dots);
}

std::string drawn(const Json& chart, const Json& runs, const Extent& steps) {
  std::vector<Line> lines;
  std::string legend;
  const std::string unit = chart["unit"];
  for (const Json& curve : chart["curves"]) {
    const std::size_t before = lines.size();
    const std::string name = curve["name"], look = curve["look"];
    for (std::size_t run = 0; run < std::min(runs.size(), kMostRunsDrawn); ++run) {
      Points points = thinned(points_of(runs[run], curve["events"], curve["column"], chart["scale"]));
      const int number = runs.size() == 1 ? curve["colour"].get<int>() : static_cast<int>(run);
      if (!points.empty()) lines.push_back({look, number, std::move(points)});
    }
    if (lines.size() > before && !name.empty())
      legend += fmt::format(R"(<span><i class="{}" style="--k:{}"></i>{}</span>)", look,
                            runs.size() == 1 ? colour(curve["colour"]) : "var(--soft)", name);
  }
  if (lines.empty()) return "";
  const Scales scales{steps, values_of(lines, unit)};
  if (!std::isfinite(scales.y.high - scales.y.low)) return "";
  std::string svg = axes(scales, unit);
  for (const Line& line : lines) svg += drawn(line, scales);
  return fmt::format(
      R"(<section class="card chart"><header><h3>{0}</h3><div class="legend">{1}</div></header>)"
      R"(<svg class="plot" viewBox="0 0 {2} {3}" role="img" aria-label="{0}">{4}</svg></section>)"
      "\n",
      chart["title"].get<std::string>(), legend, kWidth, kHeight, svg);
}

}  // namespace

Points points_of(const Json& run, const std::string& events, const std::string& column, double scale) {
  const Json* const steps = column_of(run, events, "step");
  const Json* const values = column_of(run, events, column);
  Points points;
  for (std::size_t i = 0; steps != nullptr && values != nullptr && i < values->size(); ++i)
    if ((*values)[i].is_number())
      points.emplace_back((*steps)[i].get<double>(), scale * (*values)[i].get<double>());
  return points;
}

std::vector<double> ticks(double low, double high, int count) {
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  std::vector<double> found;
  if (!(raw > 0) || !std::isfinite(raw) || !(power > 0)) return found;
  const double mantissa = raw / power;  // bounds are the geometric means of neighbours
  const double step = power * (mantissa < 1.414 ? 1 : mantissa < 3.162 ? 2 : mantissa < 7.071 ? 5 : 10);
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= 2 * count && (first + i) * step <= high + 1e-9 * step; ++i)
    found.push_back((first + i) * step);
  return found;
}

Json charts_json() {
  constexpr double kPerMiB = 1.0 / (1 << 20), kPerMillisecond = 1000;
  return Json::array(
      {make_chart("Loss", "", 1, measured("loss", "loss")),
       make_chart("Accuracy", "%", 1, measured("accuracy", "train_accuracy")),
       make_chart("Learning rate", "", 1, {make_curve("", "", 0, "step", "learning_rate")}),
       make_chart("Gradient norm", "", 1, {make_curve("", "", 0, "step", "gradient_norm")}),
       make_chart("Samples a second", "", 1, {make_curve("", "", 0, "step", "samples_per_second")}),
       make_chart("Step time, ms", "", kPerMillisecond,
                  {make_curve("median", "", 0, "epoch", "step_seconds_p50"),
                   make_curve("90 %", "dashed", 2, "epoch", "step_seconds_p90"),
                   make_curve("99 %", "dotted", 1, "epoch", "step_seconds_p99")}),
       make_chart("Memory, MiB", "", kPerMiB,
                  {make_curve("resident", "", 0, "epoch", "resident_bytes"),
                   make_curve("peak", "dashed", 0, "epoch", "peak_resident_bytes"),
                   make_curve("device", "", 1, "epoch", "device_bytes"),
                   make_curve("device, peak", "dashed", 1, "epoch", "peak_device_bytes")}),
       make_chart("Exposed communication, seconds an epoch", "", 1,
                  {make_curve("", "", 0, "epoch", "exposed_seconds")}),
       make_chart("Rounded to zero, of nonzero int16 gradients", "%", 1,
                  {make_curve("", "", 0, "epoch", "rounded_to_zero")}),
       make_chart("Rank skew: the slowest above the mean", "%", 1,
                  {make_curve("", "", 0, "epoch", "rank_skew")})});
}

std::string page_without_scripts(const Json& report) {
  const Json& runs = report.at("runs");
  std::string html = "<h1>Lockstep report</h1>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json start = runs[i].value("start", Json());
    html += R"(<div class="card"><dl>)";
    const std::string swatch = runs.size() == 1 || i >= kMostRunsDrawn
                                   ? ""
                                   : fmt::format(R"(<span class="swatch" style="background:{}"></span>)",
                                                 colour(static_cast<int>(i)));
    for (const auto& [what, value] : {std::pair{"run", text_at(runs[i], "name")},
                                      {"state", text_at(runs[i], "state")},
                                      {"steps", text_at(runs[i], "steps")},
                                      {"test accuracy", text_at(runs[i], "accuracy")},
                                      {"test loss", text_at(runs[i], "test_loss")},
                                      {"start", text_at(start, "time")},
                                      {"host", text_at(start, "host")},
                                      {"command", text_at(start, "command")}})
      if (!value.empty())
        html += fmt::format("<dt>{}</dt><dd>{}<bdi>{}</bdi></dd>", what,
                            what == std::string_view("run") ? swatch : "", escaped(value));
    html += "</dl></div>\n";
  }
  html += "<h2>Curves over steps</h2>\n<div class=\"grid\">\n";
  const Extent steps = steps_of(runs);
  for (const Json& of_runs : charts_json()) html += drawn(of_runs, runs, steps);
  html += "</div>\n<p class=\"soft\">JavaScript is off: zoom, classes, mistakes and the network need it.";
  if (runs.size() > kMostRunsDrawn) html += fmt::format(" The first {} runs are drawn.", kMostRunsDrawn);
  return html + "</p>";
}

}  // namespace lockstep
