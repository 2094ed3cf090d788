// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plain shapes and text in a fixed frame.
#include "trainer/run/accuracy_curve.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

// Of a row: what stands left and right of the curve itself.
constexpr int kLabels = 16, kWidest = 72, kNarrowest = 10;

int plot_columns(int columns) {
  return std::clamp(std::min(columns, kWidest) - kLabels, kNarrowest, kWidest);
}

// Of the picture, in pixels.
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

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string grid(const Frame& frame) {
  std::string svg;
  const int first = static_cast<int>(std::lround(frame.low * 10));
  for (int tenth = first; tenth <= 10; ++tenth) {
    const double y = frame.y(tenth / 10.0);
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                       kLeft, y, kWidth - kRight, y);
    svg += label(kLeft - 8, y + 4, "end", fmt::format("{:.1f}", tenth / 10.0));
  }
  const std::int64_t every = std::max<std::int64_t>(1, (frame.epochs + 19) / 20);
  for (std::int64_t epoch = 1; epoch <= frame.epochs; epoch += every)
    svg += label(frame.x(epoch), kHeight - kBottom + 20, "middle", std::to_string(epoch));
  svg += label((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "epoch");
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
    const auto event = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
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
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += label(kLeft, kTop - 16, "start", title);
  svg += grid(frame);
  std::string line, dots;
  for (const CurvePoint& point : points) {
    const double x = frame.x(point.epoch), y = frame.y(point.accuracy);
    line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x, y);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#1f77b4\"><title>epoch {}: "
        "{:.4f}</title></circle>\n",
        x, y, point.epoch, point.accuracy);
  }
  svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\"/>\n{}",
                     line, dots);
  return svg + "</svg>\n";
}

}  // namespace lockstep
