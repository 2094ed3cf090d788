// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Drawing by distance.
#include "data/pen.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kLinesPerCurve = 6;  // bends of a 15-pixel stroke are then off by less than a tenth of a pixel
constexpr float kFar = 1e6F;

Point on_curve(const Curve& curve, float t) {
  const float a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
  return {a * curve.from.x + b * curve.control.x + c * curve.to.x,
          a * curve.from.y + b * curve.control.y + c * curve.to.y};
}

/// Pixels from low to high, both included, that lie on the picture.
struct Range {
  int first, last;
};

Range pixels_between(float low, float high, int side) {
  return {std::max(0, static_cast<int>(std::floor(low))),
          std::min(side - 1, static_cast<int>(std::ceil(high)))};
}

}  // namespace

Pen::Pen(int side, float radius)
    : side_(side),
      radius_(radius),
      nearest_(static_cast<std::size_t>(side) * static_cast<std::size_t>(side), kFar) {}

void Pen::draw(const Curve& curve) {
  Point from = curve.from;
  for (int i = 1; i <= kLinesPerCurve; ++i) {
    const Point to = on_curve(curve, static_cast<float>(i) / kLinesPerCurve);
    draw_line(from, to);
    from = to;
  }
}

void Pen::draw_line(Point from, Point to) {
  const float reach = radius_ + 0.5F;
  const Range rows = pixels_between(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach, side_);
  const Range columns = pixels_between(std::min(from.x, to.x) - reach, std::max(from.x, to.x) + reach, side_);
  const float dx = to.x - from.x, dy = to.y - from.y;
  const float scale = 1.0F / std::max(dx * dx + dy * dy, 1e-6F);
  for (int row = rows.first; row <= rows.last; ++row) {
    float* nearest = nearest_.data() + static_cast<std::ptrdiff_t>(row) * side_;
    const float py = static_cast<float>(row) - from.y;
    for (int column = columns.first; column <= columns.last; ++column) {
      const float px = static_cast<float>(column) - from.x;
      const float t = std::clamp((px * dx + py * dy) * scale, 0.0F, 1.0F);
      const float x = px - t * dx, y = py - t * dy;
      nearest[column] = std::min(nearest[column], x * x + y * y);
    }
  }
}

void Pen::coverage(std::span<float> coverage) const {
  for (std::size_t i = 0; i < coverage.size(); ++i)
    coverage[i] = std::clamp(radius_ + 0.5F - std::sqrt(nearest_[i]), 0.0F, 1.0F);
}

}  // namespace lockstep
