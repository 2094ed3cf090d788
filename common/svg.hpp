// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts that our pictures are made of: SVG that any browser shows, without times or places.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// A white sheet of so many pixels, up to its first part; "</svg>\n" ends it.
std::string svg_sheet(double width, double height);
/// One line of any text. @param anchor  which end of it is at x: "start", "middle" or "end"
std::string svg_label(double x, double y, const char* anchor, std::string_view text);
/// A thin grey line from the left to the right.
std::string svg_rule(double left, double right, double y);
/// A line through points (x, y).
std::string svg_line(const std::vector<std::pair<double, double>>& points, std::string_view colour,
                     bool dashed = false);
/// A dot that says `title` when pointed at.
std::string svg_dot(double x, double y, std::string_view colour, std::string_view title);

}  // namespace lockstep
