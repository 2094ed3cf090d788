// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plain shapes and text in a fixed frame.
#include "trainer/run/accuracy_curve.hpp"

#include "common/text/json_text.hpp"
#include "common/text/svg.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

// Of a row: what stands left and right of the curve itself.
constexpr int kLabels = 16, kWidest = 72, kNarrowest = 10;

int plot_columns(int columns) {
  return std::clamp(std::min(columns, kWidest) - kLabels, kNarrowest, kWidest);
}

// Of the picture, in pixels.
constexpr const char* kColour = "#1f77b4";
constexpr double kWidth = 640, kHeight = 400, kLeft = 60, kRight = 20, kTop = 40, kBottom = 50;

struct Frame {
  std::int64_t epochs;
  double low;  ///< the accuracy at the bottom; the top is 1
  double x(std::int64_t epoch) const {
    const double share = epochs > 1 ? static_cast<double>(epoch - 1) / static_cast<double>(epochs - 1) : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double accuracy) const {
    return kHeight - kBottom - (accuracy - low) / (1 - low) * (kHeight - kTop - kBottom);
  }
};

/// The largest multiple of a tenth that leaves all points above it.
double low_end(const std::vector<CurvePoint>& points) {
  double least = 1;
  for (const CurvePoint& point : points) least = std::min(least, point.accuracy);
  return std::clamp(std::floor(least * 10) / 10, 0.0, 0.9);
}

std::string grid(const Frame& frame) {
  std::string svg;
  const int first = static_cast<int>(std::lround(frame.low * 10));
  for (int tenth = first; tenth <= 10; ++tenth) {
    const double y = frame.y(tenth / 10.0);
    svg += svg_rule(kLeft, kWidth - kRight, y);
    svg += svg_label(kLeft - 8, y + 4, "end", fmt::format("{:.1f}", tenth / 10.0));
  }
  const std::int64_t every = std::max<std::int64_t>(1, (frame.epochs + 19) / 20);
  for (std::int64_t epoch = 1; epoch <= frame.epochs; epoch += every)
    svg += svg_label(frame.x(epoch), kHeight - kBottom + 20, "middle", std::to_string(epoch));
  svg += svg_label((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "epoch");
  return svg;
}

}  // namespace

std::vector<CurvePoint> curve_points(Env& env, const std::string& metrics_path) {
  std::vector<CurvePoint> points;
  if (!env.exists(metrics_path)) return points;
  const std::vector<std::byte> bytes = env.read(metrics_path);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find("\"epoch\"") == line.npos) continue;  // most lines tell of steps
    const auto event = parse_json_or_discard(line);
    if (!event.is_object() || event.value("/event"_json_pointer, nlohmann::json()) != "epoch") continue;
    const auto epoch = event.value("/epoch"_json_pointer, nlohmann::json());
    const auto accuracy = event.value("/test_accuracy"_json_pointer, nlohmann::json());
    if (!epoch.is_number_integer() || !accuracy.is_number()) continue;
    points.push_back({epoch.get<std::int64_t>(), accuracy.get<double>()});
  }
  return points;
}

std::string curve_row(const CurvePoint& point, int columns, bool unicode) {
  const int width = plot_columns(columns);
  const int at = std::clamp(static_cast<int>(std::lround(point.accuracy * (width - 1))), 0, width - 1);
  return fmt::format("{:>4} |{:{}}{}{:{}}| {:.4f}", point.epoch, "", at, unicode ? "●" : "*", "",
                     width - 1 - at, point.accuracy);
}

std::string curve_scale(int columns) {
  return fmt::format("     0{:->{}}1  test accuracy", "", plot_columns(columns));
}

std::string curve_svg(const std::vector<CurvePoint>& points, std::int64_t epochs, const std::string& title) {
  const Frame frame{std::max(epochs, points.back().epoch), low_end(points)};
  std::string svg = svg_sheet(kWidth, kHeight);
  svg += svg_label(kLeft, kTop - 16, "start", title);
  svg += grid(frame);
  std::vector<std::pair<double, double>> line;
  std::string dots;
  for (const CurvePoint& point : points) {
    line.emplace_back(frame.x(point.epoch), frame.y(point.accuracy));
    dots += svg_dot(line.back().first, line.back().second, kColour,
                    fmt::format("epoch {}: {:.4f}", point.epoch, point.accuracy));
  }
  svg += svg_line(line, kColour) + dots;
  return svg + "</svg>\n";
}

}  // namespace lockstep
