// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Curves over one another on a terminal: in braille, eight dots a character, or in ASCII.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct PlotCurve {
  char mark = 'A';  ///< stands at its end, and in ASCII all along
  std::vector<std::pair<double, double>>
      points;  ///< x, y in order of x; those that are not finite leave a gap
};

struct PlotStyle {
  int columns = 79;    ///< of the whole picture; at least 24 are taken
  int rows = 12;       ///< of the field between the scales
  bool log_y = false;  ///< equal ratios are equally far apart; what is not above 0 leaves a gap
  bool unicode = false;
  bool colours = false;  ///< with escape sequences: for write_out() alone, since print() shows them
};

/// A field with a scale on its left and below, a line feed behind each line; "" where there is no point.
std::string plot(const std::vector<PlotCurve>& curves, const PlotStyle& style);

/// What a curve is drawn in, around its mark in a legend; without colours the text as it is.
std::string in_curve_colour(const std::string& text, std::size_t curve, const PlotStyle& style);

}  // namespace lockstep
