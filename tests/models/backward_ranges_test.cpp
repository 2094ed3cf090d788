// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order and the work of backward, as bucket planning sees them.
#include "models/backward_ranges.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(BackwardRangesTest, NetFinishesItsLastLayerFirst) {
  const std::vector<BackwardRange> ranges = backward_ranges(Network::load("net", {1, 28, 28}, 10));
  const double conv1 = 288000, conv2 = 640000, fc1 = 32000, fc2 = 1000;
  const std::vector<BackwardRange> expected{
      {21330, 510, fc2 + fc1}, {5280, 16050, fc1 + conv2}, {260, 5020, conv2 + conv1}, {0, 260, 0}};
  EXPECT_EQ(ranges, expected);
}

TEST(BackwardRangesTest, OneLayerLeavesNoWorkBehind) {
  const std::vector<BackwardRange> expected{{0, 7850, 0}};
  EXPECT_EQ(backward_ranges(Network::load("linear", {1, 28, 28}, 10)), expected);
}

TEST(BackwardRangesTest, WorkOfNetAddsUpToItsBackwardPass) {
  const Network net = Network::load("net", {1, 28, 28}, 10);
  double flops = 1000;  // the weight gradient of fc2 comes before the first range
  for (const BackwardRange& range : backward_ranges(net)) flops += range.flops;
  EXPECT_EQ(flops, net.training_flops_per_sample() - 961000);  // less the forward pass
}

}  // namespace
}  // namespace lockstep
