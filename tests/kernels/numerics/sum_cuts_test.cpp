// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The cuts of sums as docs/arithmetic.md promises them: whoever changes one changes the weights of every run, and
/// kArithmeticVersion.
#include "kernels/numerics/sum_cuts.hpp"

#include "kernels/optimizers/update_rule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(SumCutsTest, AreThoseOfArithmeticVersionTwo) {
  EXPECT_EQ(kArithmeticVersion, 2);
  EXPECT_EQ(InputSlices::kBlock, 120);
  EXPECT_EQ(kOutputBlock, 128);
  EXPECT_EQ(kSampleBlock, 128);
  EXPECT_EQ(kLossSums, 4);
  EXPECT_EQ(kPartialSums, 16);
  EXPECT_EQ(kNormLanes, 256);
  std::vector<int> distances;
  for (int step = 0; step < kLaneSteps; ++step) distances.push_back(lane_distance(step));
  EXPECT_EQ(distances, (std::vector{16, 1, 2, 8, 4}));
}

TEST(SumCutsTest, SlicesOfLinearLayers) {
  struct Case {
    int inputs, count, length;
  };
  for (const Case& c :
       {Case{1, 1, 1}, {10, 1, 10}, {11, 2, 6}, {35, 4, 9}, {320, 16, 20}, {38400, 16, 2400}}) {
    EXPECT_EQ(InputSlices(c.inputs).count, c.count) << c.inputs;
    EXPECT_EQ(InputSlices(c.inputs).length, c.length) << c.inputs;
  }
}

TEST(SumCutsTest, GroupsOfChannels) {
  struct Case {
    int channels, count, per_group;
  };
  for (const Case& c :
       {Case{1, 1, 1}, {3, 3, 1}, {4, 4, 1}, {6, 4, 2}, {9, 5, 2}, {10, 5, 2}, {20, 4, 5}, {50, 5, 10}}) {
    EXPECT_EQ(ChannelGroups(c.channels).count, c.count) << c.channels;
    EXPECT_EQ(ChannelGroups(c.channels).per_group, c.per_group) << c.channels;
  }
}

/// Net's and LeNet's, and a grain of more groups of 32 samples than there are units.
TEST(SumCutsTest, UnitsAndTermsOfWeightGradients) {
  struct Case {
    int grain, height, width, pairs;
    std::vector<int> split;  ///< sample groups, sample units, rows, row units, units of a term, terms
  };
  for (const Case& c : {Case{64, 24, 24, 10, {1, 2, 1, 24, 4, 12}},
                        {64, 8, 8, 200, {1, 2, 2, 4, 4, 2}},
                        {64, 9, 9, 1000, {1, 2, 3, 3, 3, 2}},
                        {4200, 1, 2, 1, {2, 66, 1, 1, 5, 14}}}) {
    const GradientSplit s(c.grain, c.height, c.width, c.pairs);
    EXPECT_EQ((std::vector{s.sample_groups, s.sample_units, s.rows, s.row_units, s.units_of_term, s.terms}),
              c.split)
        << "grain " << c.grain << ", " << c.height << " x " << c.width << ", " << c.pairs << " pairs";
  }
}

}  // namespace
}  // namespace lockstep
