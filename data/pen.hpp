// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A round pen that draws curves on a small square picture.
#pragma once

#include <span>
#include <vector>

namespace lockstep {

struct Point {
  float x = 0, y = 0;
};

/// A quadratic Bezier curve.
struct Curve {
  Point from, control, to;
};

/// Keeps for each pixel its squared distance to the nearest point drawn; ink is computed from that at the
/// end, so that strokes that cross do not get darker.
class Pen {
 public:
  /// @param radius  half of a stroke's width, in pixels
  Pen(int side, float radius);

  /// Coordinates in pixels; pixel (row, column) has its centre at y = row, x = column. What lies outside is
  /// cut off.
  void draw(const Curve& curve);
  /// How much of each pixel is covered, 0 to 1, with an edge of one pixel. coverage: [side * side]
  void coverage(std::span<float> coverage) const;

 private:
  void draw_line(Point from, Point to);

  int side_;
  float radius_;
  std::vector<float> nearest_;  // squared
};

}  // namespace lockstep
