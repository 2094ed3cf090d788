// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A raster of dots: 2x4 in a braille character, one in an ASCII character.
#include "trainer/reports/plot.hpp"

#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kNarrowestPlot = 24, kLowestPlot = 2;
/// Colours of terminals that differ on light and dark: blue, red, green, magenta, cyan, yellow.
constexpr std::array kColours = {34, 31, 32, 35, 36, 33};

/// Canvas of a picture: a raster of dots, 2x4 per braille character, one per ASCII character.
class DotCanvas {
 public:
  using Dot = std::pair<double, double>;  ///< from the left and from above, in whole numbers

  /// Borrows `style`; only its unicode and colours are used.
  DotCanvas(int columns, int rows, const PlotStyle& style)
      : columns_(columns), rows_(rows), style_(style), cells_(static_cast<std::size_t>(columns * rows)) {}

  int width() const { return columns_ * across(); }
  int height() const { return rows_ * down(); }

  /// A straight line. @param mark  of its characters, where they are ASCII
  void line(const Dot& from, const Dot& to, char mark, std::size_t curve) {
    const double right = to.first - from.first, down = to.second - from.second;
    const int steps = std::max(1, static_cast<int>(std::max(std::abs(right), std::abs(down))));
    for (int i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / steps;
      dot(static_cast<int>(std::lround(from.first + share * right)),
          static_cast<int>(std::lround(from.second + share * down)), mark, curve);
    }
  }
  /// The mark itself, over what is there.
  void put(const Dot& at, char mark, std::size_t curve) {
    Cell& cell = cell_at(static_cast<int>(std::lround(at.first)), static_cast<int>(std::lround(at.second)));
    cell.mark = mark;
    cell.is_end = true;
    cell.curve = curve;
  }
  /// A line of text, as far as something is drawn on it.
  std::string row(int number) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[static_cast<std::size_t>(number * columns_ + column)];
      text += cell.mark == 0 ? " " : in_curve_colour(glyph(cell), cell.curve, style_);
    }
    if (!style_.colours) text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

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
  void dot(int x, int y, char mark, std::size_t curve) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    // Bits from U+2800: dots 1, 2, 3, 7 on the left, downwards, 4, 5, 6, 8 on the right.
    constexpr std::array<std::array<unsigned, 2>, 4> kBits = {
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    Cell& cell = cell_at(x, y);
    cell.dots |= kBits[static_cast<std::size_t>(y % down())][static_cast<std::size_t>(x % across())];
    if (cell.is_end) return;
    cell.mark = mark;
    cell.curve = curve;
  }
  std::string glyph(const Cell& cell) const {
    if (cell.is_end || !style_.unicode) return std::string(1, cell.mark);
    const unsigned code = 0x2800 + cell.dots;  // three bytes of UTF-8
    return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  int columns_, rows_;
  const PlotStyle& style_;
  std::vector<Cell> cells_;
};

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

void draw(const std::vector<PlotCurve>& curves, const Extent& x, const Extent& y, DotCanvas* canvas) {
  const auto dot_of = [&](const std::pair<double, double>& point) {
    return DotCanvas::Dot(std::round(x.share(point.first) * (canvas->width() - 1)),
                          std::round((1 - y.share(point.second)) * (canvas->height() - 1)));
  };
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const std::pair<double, double>* before = nullptr;
    for (const auto& point : curves[c].points) {
      if (!is_finite(point)) {
        before = nullptr;
        continue;
      }
      canvas->line(dot_of(before != nullptr ? *before : point), dot_of(point), curves[c].mark, c);
      before = &point;
    }
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const auto last = std::find_if(curves[c].points.rbegin(), curves[c].points.rend(), is_finite);
    if (last != curves[c].points.rend()) canvas->put(dot_of(*last), curves[c].mark, c);
  }
}

/// The first, the middle and the last number below the field, the middle one only where there is room.
std::string scale_below(const Extent& x, int indent, int columns) {
  const std::string first = fmt::format("{:.9g}", x.low), last = fmt::format("{:.9g}", x.high);
  if (x.low == x.high) return fmt::format("{:{}}{:>{}}\n", "", indent, first, columns / 2 + 1);
  const int room = columns - static_cast<int>(first.size() + last.size());
  if (room < 1) return fmt::format("{:{}}{:.{}}\n", "", indent, first, columns);
  const double half = std::round(x.at(0.5));
  const std::string middle = room > 12 && x.high - x.low >= 2 ? fmt::format("{:.9g}", half) : "";
  const int at = static_cast<int>(std::lround(x.share(half) * (columns - 1)));
  std::string line = first;
  if (!middle.empty())
    line += fmt::format("{:>{}}", middle, std::max(at + 1 - static_cast<int>(first.size()), 0));
  line += fmt::format("{:>{}}", last, std::max(columns - static_cast<int>(line.size()), 0));
  return std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
}

}  // namespace

std::string in_curve_colour(const std::string& text, std::size_t curve, const PlotStyle& style) {
  if (!style.colours) return text;
  return fmt::format("\033[{}m{}\033[0m", kColours[curve % kColours.size()], text);
}

std::string plot(std::vector<PlotCurve> curves, const PlotStyle& style) {
  Extent x, y;
  for (PlotCurve& curve : curves)
    for (auto& point : curve.points) {
      if (style.log_y) point.second = std::log10(point.second);  // not finite for 0 and less
      if (is_finite(point)) x.add(point.first), y.add(point.second);
    }
  if (x.low > x.high) return "";
  const int rows = std::max(style.rows, kLowestPlot);
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  for (const int row : {0, (rows - 1) / 2, rows - 1}) {
    const double value = y.at(1 - static_cast<double>(row) / (rows - 1));
    labels[static_cast<std::size_t>(row)] = fmt::format("{:.4g}", style.log_y ? std::pow(10, value) : value);
  }
  int width = 0;
  for (const std::string& label : labels) width = std::max(width, display_width(label));
  const int columns = std::max(style.columns, kNarrowestPlot) - width - 2;
  DotCanvas canvas(columns, rows, style);
  draw(curves, x, y, &canvas);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    const char* const rule = style.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    text += fmt::format("{:>{}} {}{}\n", label, width, rule, canvas.row(row));
  }
  text += style.unicode ? fmt::format("{:{}}└{:─>{}}\n", "", width + 1, "", columns)
                        : fmt::format("{:{}}+{:->{}}\n", "", width + 1, "", columns);
  return text + scale_below(x, width + 2, columns);
}

}  // namespace lockstep
