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

/// Canvas of a picture: a raster of dots, 2x4 per braille character, one per ASCII character.
class DotCanvas {
 public:
  using Dot = std::pair<double, double>;  ///< from the left and from above, rounded where it is drawn

  /// Borrows `style`; only its unicode and colours are used.
  DotCanvas(int columns, int rows, const PlotStyle& style)
      : columns_(columns), rows_(rows), style_(style), cells_(static_cast<std::size_t>(columns * rows)) {}

  int width() const { return columns_ * across(); }
  int height() const { return rows_ * down(); }

  /// A straight line. @param mark  of its characters, where they are ASCII
  void line(const Dot& from, const Dot& to, char mark, std::size_t curve = 0);
  /// The mark itself, over what is there.
  void put(const Dot& at, char mark, std::size_t curve);
  /// A line of text, as far as something is drawn on it.
  std::string row(int number) const;

 private:
  struct Cell {
    unsigned dots = 0;  ///< bits of a braille character
    char mark = 0;      ///< 0: nothing is here
    bool is_end = false;
    std::size_t curve = 0;
  };

  int across() const { return style_.unicode ? 2 : 1; }
  int down() const { return style_.unicode ? 4 : 1; }
  Cell& cell_at(int x, int y) {
    return cells_[static_cast<std::size_t>(y / down() * columns_ + x / across())];
  }
  void dot(int x, int y, char mark, std::size_t curve);
  std::string glyph(const Cell& cell) const;

  int columns_, rows_;
  const PlotStyle& style_;
  std::vector<Cell> cells_;
};

/// Draws curves with a scale on the left and below, each line ended by a line feed. "" where there is no point.
std::string plot(std::vector<PlotCurve> curves, const PlotStyle& style);

/// Colours a text like a curve, for its mark in a legend; without colours the text as it is.
std::string in_curve_colour(const std::string& text, std::size_t curve, const PlotStyle& style);

}  // namespace lockstep
