// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The set `synthetic`: 28x28 digits drawn in memory, for tests and for machines without a network.
#pragma once

#include "data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

inline constexpr int kSyntheticSetSide = 28;
inline constexpr int kSyntheticSetClasses = 10;
inline constexpr std::int64_t kSyntheticSetTrainSamples = 6000;
inline constexpr std::int64_t kSyntheticSetTestSamples = 1000;

/// Draws the set from options.seed and the numbers of samples; a sample depends on seed, half (train or test)
/// and its own index only, so a larger set begins with the smaller one. Every machine draws the same bytes.
TrainTestData make_synthetic_set(const DatasetOptions& options);

// A round pen that draws curves on a small square picture.

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

// How the ten digits are written: strokes in a unit box.

/// The strokes of a digit 0 to 9, in a box from (0, 0) top left to (1, 1) bottom right.
std::span<const Curve> strokes_of_digit(std::int32_t digit);

}  // namespace lockstep
