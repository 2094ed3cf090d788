// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets that are made and not read: random numbers, and digits that are drawn.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_loading.hpp"
#include "kernels/numerics/random.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// The set `random`: features from N(0, 1), as in PyTorch's DataParallel tutorial, with labels to learn.

/// Makes the set from options.seed and the numbers of samples. A sample depends on seed, half (train or test)
/// and its index only. The label is the larger of two fixed random linear functions of the features. Bits
/// are the same on every machine: no function of libm but the square root takes part.
TrainTestData make_random_set(const SetEntry& set, const DatasetOptions& options);

// A sequence of random numbers for one made-up sample: Philox, read one word after another.

/// Uses of the numbers of RandomUse::kData.
enum class DataStream : std::uint32_t {
  kRandomMap = 0,
  kRandomTrain,
  kRandomTest,
  kSyntheticTrain,
  kSyntheticTest,
  kHoldOut,  ///< this and the following of any set; data/sets/hold_out.cpp
  kTrainSubset,
  kTestSubset
};

/// Word w of a sample is word w % 4 of philox(seed, {w / 4, sample, random_stream(kData, stream), 0}).
/// All results are the same on every machine: additions, multiplications, divisions and square roots only.
class SampleDraws {
 public:
  SampleDraws(std::uint64_t seed, DataStream stream, std::uint32_t sample)
      : seed_(seed), stream_(stream), sample_(sample) {}

  std::uint32_t bits() {
    const std::uint32_t word = next_++;
    if (word % 4 == 0)
      block_ = philox(seed_, {{word / 4, sample_,
                               random_stream(RandomUse::kData, static_cast<std::uint32_t>(stream_)), 0}});
    return block_.value[word % 4];
  }
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform01(bits()); }
  /// In [0, bound), by multiply and shift: off from uniform by less than bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{bits()} * bound) >> 32);
  }
  /// From N(0, 1), by the inverse of its distribution function.
  double normal();

 private:
  std::uint64_t seed_;
  DataStream stream_;
  std::uint32_t sample_;
  std::uint32_t next_ = 0;
  Philox4 block_{};
};

// The set `synthetic`: 28x28 digits drawn in memory, for tests and for machines without a network.

/// Draws the set from options.seed and the numbers of samples. A sample depends on seed, half (train or test)
/// and its index only, so a larger set begins with the smaller one. Every machine draws the same bytes.
TrainTestData make_synthetic_set(const SetEntry& set, const DatasetOptions& options);

// A round pen that draws curves on a small square picture.

struct Point {
  float x = 0, y = 0;
};

/// A quadratic Bezier curve.
struct Stroke {
  Point from, control, to;
};

/// Keeps for each pixel its squared distance to the nearest point drawn. Ink is computed from that at the
/// end, so that strokes that cross do not get darker.
class Pen {
 public:
  /// @param radius  half of a stroke's width, in pixels
  Pen(int side, float radius);

  /// Coordinates in pixels; pixel (row, column) has its centre at y = row, x = column. Parts outside are
  /// cut off.
  void draw(const Stroke& curve);
  /// How much of each pixel is covered, 0 to 1, with an edge of one pixel. coverage: [side * side]
  void coverage(std::span<float> coverage) const;

 private:
  void draw_line(Point from, Point to);

  int side_;
  float radius_;
  std::vector<float> nearest_;  // squared
};

// How the ten digits are written: strokes in a unit box.

/// The strokes of a digit 0 to 9. They are in a box from (0, 0) top left to (1, 1) bottom right.
std::span<const Stroke> strokes_of_digit(std::int32_t digit);

}  // namespace lockstep
