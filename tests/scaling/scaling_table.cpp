// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows in fixed columns.
#include "common/plot.hpp"
#include "common/text_layout.hpp"
#include "tests/scaling/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace lockstep {

namespace {

std::string buckets_text(const Scenario& scenario) {
  const std::size_t count = scenario.plan.buckets.size();
  return scenario.buckets_asked == 0 ? fmt::format("auto: {}", count) : fmt::format("{}", count);
}

std::string row(const Scenario& s) {
  return fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9.1f} {:>10.1f} {:>5.1f} % {:>9.2f} {:>+7.1f} %",
                     s.cluster.ranks, s.cluster.nodes(), name_of(s.kind), buckets_text(s),
                     s.simulated.total * 1e6, s.simulated.exposed * 1e6, 100 * s.efficiency(),
                     s.simulated.exposed / s.bound, 100 * s.deviation());
}

}  // namespace

std::vector<std::string> scaling_table(std::span<const Scenario> scenarios) {
  std::vector<std::string> lines{fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9} {:>10} {:>7} {:>9} {:>9}",
                                             "ranks", "nodes", "reduce", "buckets", "step us", "exposed us",
                                             "effic.", "x bound", "model off")};
  double largest = 0, most = 0;
  for (const Scenario& scenario : scenarios) {
    lines.push_back(row(scenario));
    largest = std::max(largest, std::abs(scenario.deviation()));
    most = std::max(most, scenario.simulated.exposed / scenario.bound);
  }
  lines.push_back(
      fmt::format("the model's step is off the simulated one by at most {:.1f} %", 100 * largest));
  lines.push_back(fmt::format("at most {:.2f} times the bound of one all-reduce is exposed", most));
  return lines;
}

// Two panels, one above the other, and the names of the lines beside them.

namespace {

// Of the picture, in pixels.
constexpr double kSheetWidth = 760, kPanelHeight = 230, kLeftEdge = 70, kRightEdge = 560, kFirstTop = 50,
                 kGap = 60;
constexpr double kSheetHeight = kFirstTop + 2 * kPanelHeight + kGap + 50;
constexpr std::array kLineColours{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728",
                                  "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"};

struct Curve {
  std::string name;
  std::string_view colour;
  std::vector<const Scenario*> points;  ///< by ranks
};

std::vector<Curve> curves_of(std::span<const Scenario> scenarios) {
  std::vector<Curve> curves;
  for (const Scenario& scenario : scenarios) {
    const std::string buckets =
        scenario.buckets_asked == 0 ? "buckets auto" : counted(scenario.buckets_asked, "bucket");
    const std::string name = fmt::format("{}, {}", name_of(scenario.kind), buckets);
    auto found = std::ranges::find(curves, name, &Curve::name);
    if (found == curves.end()) {
      curves.push_back({name, kLineColours[curves.size() % kLineColours.size()], {}});
      found = curves.end() - 1;
    }
    found->points.push_back(&scenario);
  }
  for (Curve& curve : curves)
    std::ranges::sort(curve.points, {}, [](const Scenario* point) { return point->cluster.ranks; });
  return curves;
}

/// What is drawn, and where.
struct Panel {
  std::string title;
  double top;                                               ///< pixels
  double most;                                              ///< the number there; 0 is below
  std::function<double(const Scenario&)> simulated, model;  ///< the numbers
  double y(double value) const { return top + kPanelHeight * (1 - value / most); }
};

/// Ranks on a scale of powers of two.
class RankAxis {
 public:
  explicit RankAxis(std::span<const Scenario> scenarios) {
    for (const Scenario& scenario : scenarios) ranks_[scenario.cluster.ranks] = 0;
    const double first = std::log2(ranks_.begin()->first), last = std::log2(ranks_.rbegin()->first);
    for (auto& [ranks, x] : ranks_)
      x = last > first ? kLeftEdge + (std::log2(ranks) - first) / (last - first) * (kRightEdge - kLeftEdge)
                       : (kLeftEdge + kRightEdge) / 2;
  }
  double x(const Scenario& scenario) const { return ranks_.at(scenario.cluster.ranks); }
  std::string labels(double y) const {
    std::string svg;
    for (const auto& [ranks, x] : ranks_) svg += svg_label(x, y, "middle", std::to_string(ranks));
    return svg + svg_label((kLeftEdge + kRightEdge) / 2, y + 18, "middle", "ranks");
  }

 private:
  std::map<int, double> ranks_;
};

std::string draw(const Panel& panel, const std::vector<Curve>& curves, const RankAxis& axis) {
  constexpr int kRules = 5;
  std::string svg = svg_label(kLeftEdge, panel.top - 8, "start", panel.title);
  for (int i = 0; i <= kRules; ++i) {
    const double value = panel.most * i / kRules;
    svg += svg_rule(kLeftEdge, kRightEdge, panel.y(value));
    svg += svg_label(kLeftEdge - 8, panel.y(value) + 4, "end", fmt::format("{:.0f}", value));
  }
  for (const Curve& curve : curves) {
    std::vector<std::pair<double, double>> simulated, model;
    std::string dots;
    for (const Scenario* point : curve.points) {
      simulated.emplace_back(axis.x(*point), panel.y(panel.simulated(*point)));
      model.emplace_back(axis.x(*point), panel.y(panel.model(*point)));
      dots += svg_dot(
          simulated.back().first, simulated.back().second, curve.colour,
          fmt::format("{}, {} ranks: {:.1f}", curve.name, point->cluster.ranks, panel.simulated(*point)));
    }
    svg += svg_line(model, curve.colour, true) + svg_line(simulated, curve.colour) + dots;
  }
  return svg;
}

std::string legend(const std::vector<Curve>& curves) {
  constexpr double kX = kRightEdge + 20, kStep = 18;
  std::string svg;
  double y = kFirstTop + 10;
  for (const Curve& curve : curves) {
    svg +=
        svg_line({{kX, y - 4}, {kX + 20, y - 4}}, curve.colour) + svg_label(kX + 26, y, "start", curve.name);
    y += kStep;
  }
  svg += svg_line({{kX, y - 4}, {kX + 20, y - 4}}, "#444", true);
  return svg + svg_label(kX + 26, y, "start", "dashed: the model");
}

/// 1, 2 or 5 times a power of ten that is not below.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(std::max(value, 1.0))));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string scaling_svg(std::span<const Scenario> scenarios, const std::string& title) {
  const auto curves = curves_of(scenarios);
  const RankAxis axis(scenarios);
  double longest = 0;
  for (const Scenario& s : scenarios)
    longest = std::max({longest, s.simulated.exposed, s.plan.exposed_seconds});
  const Panel efficiency{"efficiency, % of a step spent computing", kFirstTop, 100,
                         [](const Scenario& s) { return 100 * s.efficiency(); },
                         [](const Scenario& s) { return 100 * s.computing / s.model_total(); }};
  const Panel exposed{"exposed communication, microseconds a step", kFirstTop + kPanelHeight + kGap,
                      round_up(longest * 1e6), [](const Scenario& s) { return s.simulated.exposed * 1e6; },
                      [](const Scenario& s) { return s.plan.exposed_seconds * 1e6; }};
  return svg_sheet(kSheetWidth, kSheetHeight) + svg_label(kLeftEdge, 20, "start", title) +
         draw(efficiency, curves, axis) + draw(exposed, curves, axis) + axis.labels(kSheetHeight - 32) +
         legend(curves) + "</svg>\n";
}

}  // namespace lockstep
