// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages: layers that are joined.
#include "models/stages.hpp"

#include "common/error.hpp"
#include "models/device/device_execution.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::stages_test {

namespace {

constexpr ImageShape kInput{1, 28, 28};

std::vector<Stage> stages_of(const std::string& layers) {
  return fuse_layers(Network::parse("layers:\n" + layers, "test.yaml", kInput, 10));
}

char letter(const EpilogueStep& step) {
  switch (step.kind) {
    case EpilogueKind::kRelu:
      return 'r';
    case EpilogueKind::kDropout:
      return step.whole_channels ? 'D' : 'd';
    case EpilogueKind::kMaxPool:
      return 'm';
    case EpilogueKind::kAvgPool:
      return 'a';
  }
  return '?';
}

/// "conv2d+mr linear+rd linear": the heads and the letters of their epilogues.
std::string describe(const std::vector<Stage>& stages) {
  std::string text;
  for (const Stage& stage : stages) {
    const std::string head = stage.head == nullptr ? "alone" : stage.head->describe();
    text += (text.empty() ? "" : " ") + head.substr(0, head.find(' '));
    for (int i = 0; i < stage.epilogue.count; ++i) {
      text += (i == 0 ? "+" : "") + std::string(1, letter(stage.epilogue.steps[i]));
    }
  }
  return text;
}

TEST(StagesTest, NetIsFourStages) {
  const auto stages = fuse_layers(Network::load("net", kInput, 10));
  EXPECT_EQ(describe(stages), "conv2d+mr conv2d+Dmr linear+rd linear");
  EXPECT_EQ(stages[1].before_epilogue, (ImageShape{20, 8, 8}));
  EXPECT_EQ(stages[1].output, (ImageShape{20, 4, 4}));
  EXPECT_EQ(stages[1].epilogue.steps[0].layer, 4U);
  EXPECT_EQ(stages[2].epilogue.steps[1].layer, 9U);
}

TEST(StagesTest, LenetIsFourStages) {
  const auto stages = fuse_layers(Network::load("lenet", kInput, 10));
  EXPECT_EQ(describe(stages), "conv2d+ra conv2d+ra linear+r linear");
  EXPECT_EQ(stages[1].output, (ImageShape{50, 4, 4}));
}

TEST(StagesTest, ParametersOfAllStagesCoverTheArena) {
  const Network network = Network::load("net", kInput, 10);
  std::size_t next = 0;
  for (const Stage& stage : fuse_layers(network)) {
    if (!stage.trained()) continue;
    EXPECT_EQ(stage.parameter_offset(), next);
    next += stage.parameter_size();
  }
  EXPECT_EQ(next, network.parameters().size);
}

TEST(StagesTest, WhatDoesNotFitAnEpilogueIsAStageOfItsOwn) {
  const std::string tail = "  - linear: classes\n";
  EXPECT_EQ(describe(stages_of("  - max_pool: 2\n  - relu\n" + tail)), "alone+mr linear");
  EXPECT_EQ(describe(stages_of("  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 3\n  - relu\n" + tail)),
            "conv2d max_pool alone+r linear");
  EXPECT_EQ(describe(stages_of("  - conv2d: {out: 3, kernel: 3}\n  - relu\n  - avg_pool: {kernel: 2, stride: "
                               "1}\n" +
                               tail)),
            "conv2d+r avg_pool linear");
  EXPECT_EQ(describe(stages_of(
                "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 2\n  - avg_pool: 2\n  - relu\n" + tail)),
            "conv2d+m alone+ar linear");
  EXPECT_EQ(describe(stages_of("  - linear: 5\n  - relu\n  - dropout: 0.1\n  - relu\n  - dropout: 0.2\n"
                               "  - relu\n  - dropout: 0.3\n  - relu\n" +
                               tail)),
            "linear+rdrdr alone+dr linear");
  EXPECT_EQ(describe(stages_of("  - conv2d: {out: 3, kernel: 3}\n  - avg_pool: 2\n  - dropout: 0.1\n"
                               "  - dropout: 0.2\n" +
                               tail)),
            "conv2d+ad alone+d linear");
  EXPECT_EQ(describe(stages_of("  - linear: 5\n  - relu\n  - relu\n  - relu\n  - relu\n  - relu\n  - relu\n"
                               "  - relu\n" +
                               tail)),
            "linear+rrrrrr alone+r linear");
}

TEST(StagesTest, CurvesSumsAndGlobalPoolsAreStagesOfTheirOwn) {
  EXPECT_EQ(describe(stages_of("  - conv2d: {out: 3, kernel: 3}\n  - tanh\n  - relu\n  - global_avg_pool\n"
                               "  - sigmoid\n  - linear: 3\n  - add: sigmoid1\n  - linear: classes\n")),
            "conv2d tanh alone+r global_avg_pool sigmoid linear add linear");
}

TEST(StagesTest, AStageEndsWhereItsOutputBranches) {
  const auto stages = stages_of(
      "  - conv2d: {out: 3, kernel: 3}\n  - relu: {name: a}\n  - dropout: 0.5\n"
      "  - conv2d: {out: 3, kernel: 3, padding: 1}\n  - add: a\n  - add: a\n  - linear: classes\n");
  EXPECT_EQ(describe(stages), "conv2d+r alone+d conv2d add add linear");
  EXPECT_TRUE(stages[0].branches);
  EXPECT_FALSE(stages[1].branches);
  EXPECT_THROW(
      fuse_layers(
          Network::parse("layers: [linear: {name: a, out: 5}, relu, linear: 5, add: a, linear: classes]",
                         "test.yaml", kInput, 10),
          {.first = 1}),
      InternalError)
      << "a branch leads into the part";
  EXPECT_EQ(stages[3].branch, 1U);
  EXPECT_EQ(stages[4].branch, 1U);
}

TEST(StagesTest, ABranchMayBeTheInput) {
  const auto stages = stages_of("  - flatten\n  - linear: 784\n  - add: flatten1\n  - linear: classes\n");
  EXPECT_EQ(describe(stages), "linear add linear");
  EXPECT_EQ(stages[1].branch, 0U);
}

TEST(StagesTest, ViewsAndDropoutOfNothingDisappear) {
  EXPECT_EQ(describe(stages_of("  - flatten\n  - dropout: 0\n  - linear: classes\n")), "linear");
}

TEST(StagesTest, DropoutOfChannelsAfterFlattenIsOfElements) {
  EXPECT_EQ(describe(stages_of("  - conv2d: {out: 3, kernel: 3}\n  - flatten\n  - dropout2d: 0.5\n"
                               "  - linear: classes\n")),
            "conv2d+d linear");
}

/// The shape in which the last stage sees the epilogue before it: "3x26x26", or "none".
std::string seen_by_last(const std::string& layers) {
  const auto stages = stages_of(layers);
  const auto shape = shape_through_epilogue(stages[stages.size() - 2], stages.back());
  return shape ? to_string(*shape) : "none";
}

TEST(StagesTest, AKernelStoresThroughAnEpilogueOfItsOwnShapeOnly) {
  const std::string conv = "  - conv2d: {out: 3, kernel: 3}\n",
                    pointwise = "  - conv2d: {out: 10, kernel: 1}\n";
  const std::string all = "  - conv2d: {out: classes, kernel: [26, 26]}\n";
  EXPECT_EQ(seen_by_last(conv + "  - relu\n" + all), "3x26x26");
  EXPECT_EQ(seen_by_last(conv + "  - relu\n  - max_pool: 2\n  - conv2d: {out: classes, kernel: [13, 13]}\n"),
            "3x26x26");
  EXPECT_EQ(seen_by_last(conv + "  - relu\n  - flatten\n" + pointwise), "2028");
  EXPECT_EQ(seen_by_last(conv + "  - relu\n  - max_pool: 2\n  - flatten\n" + pointwise), "none");
  EXPECT_EQ(seen_by_last(conv + "  - relu\n  - max_pool: 2\n  - flatten\n  - linear: classes\n"), "3x26x26");
  EXPECT_EQ(
      seen_by_last("  - conv2d: {out: 10, kernel: 3}\n  - relu\n  - avg_pool: {kernel: 15, stride: 15}\n"
                   "  - flatten\n"),
      "none");
}

TEST(StagesTest, EvaluationLeavesDropoutOut) {
  const auto stages = fuse_layers(Network::load("net", kInput, 10));
  EXPECT_EQ(without_dropout(stages[1].epilogue).count, 2);
  EXPECT_EQ(without_dropout(stages[1].epilogue).pool, 2);
  EXPECT_EQ(without_dropout(stages[2].epilogue).count, 1);
}

}  // namespace

}  // namespace lockstep::stages_test

namespace lockstep {

// Numbers and mask bytes of a sample on a device, one label among them.

namespace {

std::uint64_t device_bytes(const std::string& layers, bool training, const NetworkPart& part = {}) {
  const Network network = Network::parse("layers:\n" + layers, "test.yaml", {1, 28, 28}, 10);
  const std::uint64_t bytes = device_execution_bytes(network, 7, training, part);
  EXPECT_EQ(bytes % 7, 0U);
  return bytes / 7;
}

TEST(DeviceBytesTest, OutputsAndMasksAndInTrainingGradients) {
  EXPECT_EQ(device_bytes("  - linear: classes\n", true), 4U * (1 + 784 + 10));
  EXPECT_EQ(device_bytes("  - linear: classes\n", false), 4U * (1 + 784 + 10));
  const std::string relu = "  - conv2d: {out: 2, kernel: 3}\n  - relu\n  - linear: classes\n";
  EXPECT_EQ(device_bytes(relu, true), 4U * (1 + 784 + 2 * 1352 + 10) + 1352);
  EXPECT_EQ(device_bytes(relu, false), 4U * (1 + 784 + 1352 + 10) + 1352);
  EXPECT_EQ(device_bytes(relu, true, {.first = 2, .last = 3, .gives_input_gradient = true}),
            4U * (1 + 2 * 1352 + 10));
  EXPECT_EQ(device_bytes(relu, true, {.first = 0, .last = 2, .takes_output_gradient = true}),
            4U * (1 + 784 + 3 * 1352) + 1352);
  EXPECT_EQ(device_bytes("  - max_pool: 3\n  - linear: classes\n", true), 4U * (1 + 784 + 81 + 10) + 81)
      << "the places of the largest";
}

TEST(DeviceBytesTest, GradientsThatGoByWayOfOthersHaveTheirOwnMemory) {
  EXPECT_EQ(device_bytes("  - conv2d: {out: 3, kernel: 3}\n  - relu\n  - max_pool: 2\n  - flatten\n"
                         "  - conv2d: {out: 10, kernel: 1}\n",
                         true),
            4U * (1 + 784 + 507 + 2028 + 507 + 10) + 507);
  EXPECT_EQ(device_bytes("  - conv2d: {out: 2, kernel: 3, padding: 1}\n  - relu: {name: a}\n"
                         "  - conv2d: {out: 2, kernel: 3, padding: 1}\n  - add: a\n  - linear: classes\n",
                         true),
            4U * (1 + 784 + 4 * 1568 + 1568 + 2 * 1568 + 10) + 1568);
  EXPECT_EQ(device_bytes(
                "  - linear: 12\n  - flatten: {name: a}\n  - linear: 12\n  - add: a\n  - linear: classes\n",
                true, {.first = 1, .gives_input_gradient = true}),
            4U * (1 + 3 * 12 + 12 + 2 * 12 + 10));
}

/// Six zeros, in training also six sums and a place to count refusals.
TEST(DeviceBytesTest, WhatStandsInForABiasIsCountedOnce) {
  const Network network = Network::parse("layers: [linear: {out: 6, bias: false}, linear: classes]",
                                         "test.yaml", {1, 28, 28}, 10);
  EXPECT_EQ(device_execution_bytes(network, 7, true), 7U * 4 * (1 + 784 + 2 * 6 + 10) + 6 * 4 + 7 * 8);
  EXPECT_EQ(device_execution_bytes(network, 7, false), 7U * 4 * (1 + 784 + 6 + 10) + 6 * 4);
  EXPECT_EQ(next_input_bytes(network, 7), 7U * 4 * (1 + 784));
}

}  // namespace

}  // namespace lockstep
