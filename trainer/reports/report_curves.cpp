// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The curves of a page: which there are, for the script that draws them, and as SVG for a browser that runs none.
#include "trainer/reports/report_curves.hpp"

#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/run/plot.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<std::pair<double, double>>;

/// A column of a run's events, and its look beside the others of its chart. Colours and looks are those of style.css.
struct Curve {
  std::string_view name, look;
  int colour;
  std::string_view events, column;
};

struct Chart {
  std::string_view title;
  std::string_view unit;  ///< "%": shares from 0 to 1
  double scale;
  std::vector<Curve> curves;
};

const std::vector<Chart>& charts() {
  constexpr double kPerMiB = 1.0 / (1 << 20), kPerMillisecond = 1000;
  static const std::vector<Chart> all = {
      {"Loss",
       "",
       1,
       {{"train, a step", "thin", 0, "step", "loss"},
        {"train", "dashed", 0, "epoch", "train_loss"},
        {"validation", "dotted", 2, "epoch", "validation_loss"},
        {"test", "", 1, "epoch", "test_loss"},
        {"ema, validation", "dotted", 3, "epoch", "ema_validation_loss"},
        {"ema, test", "", 3, "epoch", "ema_test_loss"},
        {"swa, validation", "dotted", 4, "epoch", "swa_validation_loss"},
        {"swa, test", "", 4, "epoch", "swa_test_loss"}}},
      {"Accuracy",
       "%",
       1,
       {{"train, a step", "thin", 0, "step", "train_accuracy"},
        {"train", "dashed", 0, "epoch", "train_accuracy"},
        {"validation", "dotted", 2, "epoch", "validation_accuracy"},
        {"test", "", 1, "epoch", "test_accuracy"},
        {"ema, validation", "dotted", 3, "epoch", "ema_validation_accuracy"},
        {"ema, test", "", 3, "epoch", "ema_test_accuracy"},
        {"swa, validation", "dotted", 4, "epoch", "swa_validation_accuracy"},
        {"swa, test", "", 4, "epoch", "swa_test_accuracy"}}},
      {"Learning rate", "", 1, {{"", "", 0, "step", "learning_rate"}}},
      {"Gradient norm", "", 1, {{"", "", 0, "step", "gradient_norm"}}},
      {"Samples a second", "", 1, {{"", "", 0, "step", "samples_per_second"}}},
      {"Step time, ms",
       "",
       kPerMillisecond,
       {{"median", "", 0, "epoch", "step_seconds_p50"},
        {"90 %", "dashed", 2, "epoch", "step_seconds_p90"},
        {"99 %", "dotted", 1, "epoch", "step_seconds_p99"}}},
      {"Memory, MiB",
       "",
       kPerMiB,
       {{"resident", "", 0, "epoch", "resident_bytes"},
        {"peak", "dashed", 0, "epoch", "peak_resident_bytes"},
        {"device", "", 1, "epoch", "device_bytes"},
        {"device, peak", "dashed", 1, "epoch", "peak_device_bytes"}}},
      {"Exposed communication, seconds an epoch", "", 1, {{"", "", 0, "epoch", "exposed_seconds"}}},
      {"Rounded to zero: of the nonzero gradients in int16",
       "%",
       1,
       {{"", "", 0, "epoch", "rounded_to_zero"}}},
      {"Rank skew: the slowest above the mean", "%", 1, {{"", "", 0, "epoch", "rank_skew"}}}};
  return all;
}

// Text in markup.

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : printable_line(text)) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

/// A member that is a text or a number; "" for anything else.
std::string text_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return "";
  if (found->is_string()) return found->get<std::string>();
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

Points points_of(const Json& run, const Curve& curve, double scale) {
  const Json* const steps = column_of(run, curve.events, "step");
  const Json* const values = column_of(run, curve.events, curve.column);
  Points points;
  for (std::size_t i = 0; steps != nullptr && values != nullptr && i < values->size(); ++i)
    if ((*values)[i].is_number())
      points.emplace_back((*steps)[i].get<double>(), scale * (*values)[i].get<double>());
  const std::size_t every = points.size() / kMostPointsDrawn + 1;
  Points kept;
  for (std::size_t i = 0; i < points.size(); i += every) kept.push_back(points[i]);
  if (!points.empty() && kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

struct Line {
  const Curve& curve;
  int colour;
  Points points;
};

/// The axes and what they span; without a span, a curve lies in the middle.
struct Scales {
  Extent x, y;

  double left(double value) const { return kLeft + (kRight - kLeft) * x.share(value); }
  double down(double value) const { return kBottom - (kBottom - kTop) * y.share(value); }
};

Scales scales_of(const std::vector<Line>& lines) {
  constexpr double kMargin = 0.06;
  Scales scales;
  for (const Line& line : lines)
    for (const auto& [x, y] : line.points) scales.x.add(x), scales.y.add(y);
  if (scales.x.low == scales.x.high) scales.x = {scales.x.low - 1, scales.x.high + 1};
  Extent& y = scales.y;
  const double margin = y.high > y.low ? kMargin * (y.high - y.low) : std::max(std::abs(y.low) / 2, 1e-3);
  y = {y.low >= 0 ? std::max(0.0, y.low - margin) : y.low - margin, y.high + margin};
  return scales;
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
  return fmt::format(R"(<g style="--k:var(--c{})"><path class="curve {}" d="{}"/>{}</g>)", line.colour,
                     line.curve.look, path, dots);
}

std::string drawn(const Chart& chart, const Json& runs) {
  std::vector<Line> lines;
  std::string legend;
  for (const Curve& curve : chart.curves) {
    const std::size_t before = lines.size();
    for (std::size_t run = 0; run < std::min(runs.size(), kMostRunsDrawn); ++run) {
      Points points = points_of(runs[run], curve, chart.scale);
      const int colour = runs.size() == 1 ? curve.colour : static_cast<int>(run);
      if (!points.empty()) lines.push_back({curve, colour, std::move(points)});
    }
    if (lines.size() > before && !curve.name.empty())
      legend += fmt::format(R"(<span><i class="{}" style="--k:var(--{})"></i>{}</span>)", curve.look,
                            runs.size() == 1 ? fmt::format("c{}", curve.colour) : "soft", curve.name);
  }
  const Scales scales = scales_of(lines);
  if (lines.empty() || !std::isfinite(scales.y.high - scales.y.low)) return "";
  std::string svg = axes(scales, chart.unit);
  for (const Line& line : lines) svg += drawn(line, scales);
  return fmt::format(
      R"(<section class="card chart"><header><h3>{0}</h3><div class="legend">{1}</div></header>)"
      R"(<svg class="plot" viewBox="0 0 {2} {3}" role="img" aria-label="{0}">{4}</svg></section>)"
      "\n",
      chart.title, legend, kWidth, kHeight, svg);
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  std::vector<double> found;
  if (!(raw > 0) || !std::isfinite(raw) || !(power > 0)) return found;
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= 0.999 * raw) step = factor * power;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= count + 1 && (first + i) * step <= high + 1e-9 * step; ++i)
    found.push_back((first + i) * step);
  return found;
}

Json charts_json() {
  Json all = Json::array();
  for (const Chart& chart : charts()) {
    Json curves = Json::array();
    for (const Curve& curve : chart.curves)
      curves.push_back({{"name", curve.name},
                        {"look", curve.look},
                        {"colour", curve.colour},
                        {"events", curve.events},
                        {"column", curve.column}});
    all.push_back({{"title", chart.title},
                   {"unit", chart.unit},
                   {"scale", chart.scale},
                   {"curves", std::move(curves)}});
  }
  return all;
}

std::string page_without_scripts(const Json& report) {
  const Json& runs = report.at("runs");
  std::string html = "<h1>Lockstep report</h1>\n<div class=\"card scroll\"><table>\n<tr>";
  constexpr std::array<std::string_view, 9> kHead = {"",      "run",  "state", "test accuracy", "test loss",
                                                     "steps", "host", "start", "command"};
  for (const std::string_view head : kHead) html += fmt::format("<th>{}</th>", head);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& run = runs[i];
    const Json start = run.value("start", Json());
    html += fmt::format("</tr>\n<tr><td>");
    if (runs.size() > 1 && i < kMostRunsDrawn)
      html += fmt::format(R"(<span class="swatch" style="background:var(--c{})" > </ span>) ", i);
          html += "</td>";
    for (const std::string& cell :
         {text_at(run, "name"), text_at(run, "state"), text_at(run, "accuracy"), text_at(run, "test_loss"),
          text_at(run, "steps"), text_at(start, "host"), text_at(start, "time"), text_at(start, "command")})
      html += fmt::format("<td><bdi>{}</bdi></td>", escaped(cell));
  }
  html += "</tr></table></div>\n<h2>Curves over steps</h2>\n<div class=\"grid\">\n";
  for (const Chart& chart : charts()) html += drawn(chart, runs);
  html +=
      "</div>\n<p class=\"soft\">JavaScript is off: there is no zoom, and classes, mistakes and the network "
      "are missing.";
  if (runs.size() > kMostRunsDrawn) html += fmt::format(" The first {} runs are drawn.", kMostRunsDrawn);
  return html + "</p>";
}

}  // namespace lockstep
