// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors share memory only when they are never needed at the same time.
#include "models/memory_plan.hpp"

#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <gtest/gtest.h>

#include <random>

namespace lockstep {
namespace {

TEST(MemoryPlanTest, TensorsThatFollowEachOtherShareMemory) {
  const std::vector<Lifetime> tensors{{640, 0, 1}, {640, 2, 3}, {320, 4, 4}};
  const MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(plan.bytes, 640U);
  EXPECT_EQ(plan.offsets, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(MemoryPlanTest, TensorsThatMeetAtOneMomentDoNotShare) {
  const std::vector<Lifetime> tensors{{640, 0, 2}, {640, 2, 3}};
  EXPECT_EQ(plan_memory(tensors).bytes, 1280U);
}

TEST(MemoryPlanTest, SmallTensorFillsTheGapBetweenTwo) {
  const std::vector<Lifetime> tensors{{1024, 0, 9}, {512, 0, 4}, {512, 0, 9}, {256, 5, 9}};
  const MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(plan.bytes, 2048U);
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
}

TEST(MemoryPlanTest, NothingNeedsNoMemory) {
  EXPECT_EQ(plan_memory({}).bytes, 0U);
}

TEST(MemoryPlanTest, RandomTensorsThatLiveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors(1 + random() % 20);
    for (Lifetime& tensor : tensors) {
      const int first = static_cast<int>(random() % 30);
      tensor = {random() % 5000, first, first + static_cast<int>(random() % 10)};
    }
    const MemoryPlan plan = plan_memory(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % MemoryPlan::kAlignmentBytes, 0U);
      ASSERT_LE(plan.offsets[i] + tensors[i].bytes, plan.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        if (tensors[i].first > tensors[j].last || tensors[j].first > tensors[i].last) continue;
        ASSERT_TRUE(plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                    plan.offsets[j] + tensors[j].bytes <= plan.offsets[i])
            << "round " << round << ", tensors " << i << " and " << j;
      }
    }
  }
}

TEST(TensorPlanTest, GrainOf64SamplesOfNetTouchesThreeMegabytes) {
  const TensorPlan plan = plan_tensors(Network::load("net", {1, 28, 28}, 10), 64);
  EXPECT_LE(plan.bytes, 3'000'000U);
  EXPECT_GE(plan.bytes, 64U * 4 * (784 + 5760 + 1440));  // input, conv1 and its pool are needed together
}

TEST(TensorPlanTest, ReluAndDropoutWorkInPlace) {
  const TensorPlan plan = plan_tensors(Network::load("net", {1, 28, 28}, 10), 64);
  for (const std::size_t in_place : {2, 4, 6, 8, 9}) {
    EXPECT_EQ(plan.layers[in_place].x, plan.layers[in_place].y) << "layer " << in_place;
    EXPECT_EQ(plan.layers[in_place].dx, plan.layers[in_place].dy) << "layer " << in_place;
  }
}

TEST(TensorPlanTest, NothingBeforeTheFirstTrainedLayerHasAGradient) {
  const Network network =
      Network::parse("layers: [avg_pool, relu, linear: 4, relu, linear: classes]", "t.yaml", {1, 8, 8}, 3);
  const TensorPlan plan = plan_tensors(network, 16);
  EXPECT_EQ(plan.first_trained, 2U);
  EXPECT_EQ(plan.layers[2].dx, TensorPlan::kNone);
  EXPECT_NE(plan.layers[3].dx, TensorPlan::kNone);
  EXPECT_EQ(plan.layers[4].dy, TensorPlan::kNone);
}

}  // namespace
}  // namespace lockstep
