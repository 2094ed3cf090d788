// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures of curves on a terminal, in braille or ASCII.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// The least and the largest number along an axis.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// Position between low and high, 0 to 1; halves keep the difference of any two numbers finite.
  double share(double value) const { return high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5; }
  double at(double share) const { return low * (1 - share) + high * share; }
};

struct PlotCurve {
  char mark = 'A';  ///< drawn at its end, and in ASCII all along
  std::vector<std::pair<double, double>>
      points;  ///< x, y in order of x; those that are not finite leave a gap
};

struct PlotStyle {
  int columns = 79;    ///< width of the whole picture, at least 24
  int rows = 12;       ///< height of the field between the scales, at least 2
  bool log_y = false;  ///< equal ratios are equally far apart; what is not above 0 leaves a gap
  bool unicode = false;
  bool colours = false;  ///< with escape sequences: for write_out() alone, since print() shows them
};

/// Draws curves with a scale on the left and below, each line ended by a line feed. "" where there is no point.
std::string plot(std::vector<PlotCurve> curves, const PlotStyle& style);

/// Colours a text like a curve, for its mark in a legend; without colours the text as it is.
std::string in_curve_colour(const std::string& text, std::size_t curve, const PlotStyle& style);

}  // namespace lockstep
