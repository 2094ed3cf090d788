// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plain shapes and text.
#include "common/svg.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string svg_escaped(std::string_view text) {
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

}  // namespace

std::string svg_sheet(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      width, height);
}

std::string svg_label(double x, double y, const char* anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     svg_escaped(text));
}

std::string svg_rule(double left, double right, double y) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                     left, y, right, y);
}

std::string svg_line(const std::vector<std::pair<double, double>>& points, std::string_view colour,
                     bool dashed) {
  std::string line;
  for (const auto& [x, y] : points) line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x, y);
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", line,
                     colour, dashed ? " stroke-dasharray=\"5 4\"" : "");
}

std::string svg_dot(double x, double y, std::string_view colour, std::string_view title) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>\n",
                     x, y, colour, svg_escaped(title));
}

}  // namespace lockstep
