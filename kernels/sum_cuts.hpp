// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cuts of sums: the one definition for the kernels of every processor (docs/arithmetic.md).
///
/// Rounding makes the order of a sum part of its result. So each is a fixed tree: chains of fused multiply-adds, cut
/// where a GPU shares work among warps, or where a chain would grow so long that rounding shows. A cut depends on the
/// shape of a layer and on the grain alone, never on the device, the batch or the number of ranks. To change a number
/// here is to change the weights of every run: tests/trainer/end_to_end/arithmetic_test.cpp knows them.
#pragma once

#include "kernels/numerics/random.hpp"  // LOCKSTEP_HOST_DEVICE
#include "kernels/numerics/sums.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>

namespace lockstep {

// Version of the sums of a step. Separate from the cuts, so that changing one of them (for
// tests/arithmetic/cuts) does not recompile what only knows their version.

/// Names the sums of docs/arithmetic.md in checkpoints, on all devices. (1 was of before they agreed.)
inline constexpr int kArithmeticVersion = 2;
/// Their version where targets of a cross-entropy of two classes are smoothed: 2 computed their gradient otherwise.
inline constexpr int kSmoothedPairArithmetic = 3;

/// How many pieces cover `size`.
LOCKSTEP_HOST_DEVICE constexpr int pieces(int size, int piece) {
  return (size + piece - 1) / piece;
}

/// Forward pass of a fully connected layer: input i belongs to slice i / length. A slice is a sum of blocks of
/// kBlock inputs, each a chain by rising input that starts from 0, the first of all from the bias. Blocks are added in
/// order, then slices.
struct InputSlices {
  static constexpr int kMost = 16;
  static constexpr int kLeastInputs = 10;  ///< fewest inputs of a slice: fewer are not worth a warp
  static constexpr int kBlock = 120;
  int count = 1, length = 1;

  constexpr explicit InputSlices(int in_features) {
    while (count < kMost && count * kLeastInputs < in_features) count *= 2;
    length = pieces(in_features, count);
  }
};

/// Data gradient of a fully connected layer: blocks of so many outputs, chains by rising output, added in order.
inline constexpr int kOutputBlock = 128;

/// Gradient of a fully connected layer's weights and bias over a grain. Blocks of so many samples, chains by rising
/// sample, added in order. One rounding to fixed point for each number.
inline constexpr int kSampleBlock = 128;

/// The channels that a convolution sums over. Group g has [g * per_group, (g + 1) * per_group) and is one chain,
/// channel by channel; groups are added in order. In the forward pass these are the channels of x, in the data
/// gradient those of dy; in a convolution with `groups`, those of an output's group alone.
struct ChannelGroups {
  static constexpr int kMost = 5;
  int channels = 1, count = 1, per_group = 1;

  constexpr explicit ChannelGroups(int all_channels)
      : channels(all_channels), count(std::min(all_channels, kMost)) {
    const int four = 4 * pieces(channels, 4), five = 5 * pieces(channels, 5);
    if (channels > 4 && four <= five) count = 4;
    per_group = pieces(channels, count);
  }
};

/// Gradient of a convolution's weights and bias over a grain. Sample n of the grain is lane n % 32. A unit is some
/// rows of pixels of some samples: a chain for each lane, of every 32nd sample, then rows, then columns. Units are in
/// order of rows, and of the same rows by samples, which are neighbours in memory. A term is `units_of_term` units in
/// a row: they are added lane by lane, in order, and then the lanes (lane_distance). Each term is rounded to fixed
/// point.
struct GradientSplit {
  static constexpr int kLanes = 32;
  static constexpr int kMostUnitsOfTerm = 8;
  static constexpr int kMostUnits = kPartialSums * kMostUnitsOfTerm;

  int sample_groups = 1;  ///< groups of 32 samples in a unit, one after another
  int sample_units = 1;
  int rows = 1;  ///< rows of pixels in a unit
  int row_units = 1;
  int units_of_term = 1;
  int terms = 1;  ///< terms of a grain

  /// @param grain  samples; only how many groups of 32 they begin matters
  /// @param pairs  pairs of input and output channel: the fewer, the more units, as all together keep a GPU busy
  GradientSplit(int grain, int out_height, int out_width, int pairs) {
    constexpr int kWantedUnits = 5000;  // all pairs together: several for each of 528 schedulers
    constexpr int kLeastPixels = 16;    // Fewer are not worth the sums over the lanes.
    const int groups = pieces(grain, kLanes);
    sample_groups = pieces(groups, kMostUnits);
    sample_units = pieces(groups, sample_groups);
    const int wanted = pieces(kWantedUnits, std::min(pairs, kWantedUnits) * sample_units);
    const int least_rows = std::min(out_height, pieces(kLeastPixels, out_width));
    rows =
        std::max(least_rows, pieces(out_height, std::min({out_height, wanted, kMostUnits / sample_units})));
    row_units = pieces(out_height, rows);
    terms = pieces(units(), std::max(4, pieces(units(), kPartialSums)));
    units_of_term = pieces(units(), terms);
  }
  GradientSplit(const Conv2dShape& s, int grain)
      : GradientSplit(grain, s.out_height(), s.out_width(), s.group_inputs() * s.out_channels) {}

  LOCKSTEP_HOST_DEVICE constexpr int units() const { return sample_units * row_units; }
  constexpr int samples_of_unit() const { return sample_groups * kLanes; }
};

/// Row i of an adaptive pool, or column: [begin, end) of `in`.
struct AdaptiveWindow {
  int begin, end;

  LOCKSTEP_HOST_DEVICE constexpr AdaptiveWindow(int i, int in, int out)
      : begin(static_cast<int>(std::int64_t{i} * in / out)),
        end(static_cast<int>(((std::int64_t{i} + 1) * in + out - 1) / out)) {}
  LOCKSTEP_HOST_DEVICE constexpr int size() const { return end - begin; }
};

/// layer_norm and group_norm, in double. Number k of a group of one sample goes to chain k % kGroupNormChains. Chains
/// i and i + half are added, for half 8, 4, 2, 1. The gradients of weights over a grain: sample n is lane n %
/// kGroupNormLanes, pixel p goes to chain p % kGroupNormPixelChains of its lane, by pixel, then by sample; (0 + 1) +
/// (2 + 3), then lanes i and i + half. One rounding to fixed point.
inline constexpr int kGroupNormChains = 16;
inline constexpr int kGroupNormLanes = 16;
inline constexpr int kGroupNormPixelChains = 4;

/// The softmax of a sample. Class c is added to sum c % kLossSums, in order; then (0 + 1) + (2 + 3).
inline constexpr int kLossSums = 4;

/// The tree over 32 lanes: in step 0 ... 4, each lane adds the one that is so far away. 16 comes first because a CPU
/// has such partners in two registers, neighbours next because it turns four sums over at once.
LOCKSTEP_HOST_DEVICE constexpr int lane_distance(int step) {
  return step == 0 ? 16 : step == 1 ? 1 : step == 2 ? 2 : step == 3 ? 8 : 4;
}

}  // namespace lockstep
