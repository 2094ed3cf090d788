// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stages: layers that are joined.
#include "models/stages.hpp"

#include "common/error.hpp"
#include "models/device/device_execution.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/memory_plan.hpp"
#include "models/network.hpp"
#include "models/repeated_layers.hpp"
#include "models/tensor_plan.hpp"
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
}

}  // namespace

// Tensors share memory only when they are never needed at the same time.

namespace {

TEST(MemoryPlanTest, TensorsShareMemoryUnlessTheyMeetAtOneMoment) {
  struct Row {
    std::vector<Lifetime> tensors;
    std::size_t bytes;
    std::vector<std::size_t> offsets;
  };
  for (const Row& row :
       {Row{{{640, 0, 1}, {640, 2, 3}, {320, 4, 4}}, 640, {0, 0, 0}},
        Row{{{640, 0, 2}, {640, 2, 3}}, 1280, {0, 640}},
        Row{{{1024, 0, 9}, {512, 0, 4}, {512, 0, 9}, {256, 5, 9}}, 2048, {0, 1024, 1536, 1024}},
        Row{{}, 0, {}}}) {
    const MemoryPlan plan = plan_memory(row.tensors);
    EXPECT_EQ(plan.bytes, row.bytes);
    EXPECT_EQ(plan.offsets, row.offsets);
  }
}

TEST(MemoryPlanTest, RandomTensorsThatLiveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors(1 + random() % 20);
    for (Lifetime& tensor : tensors) {
      const std::size_t first = random() % 30;
      tensor = {random() % 5000, first, first + random() % 10};
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

/// The input, and outputs of 10 and 20 numbers. In the second one a gradient of 20, and signs, which have 64 bytes.
TEST(TensorPlanTest, TwoLayersTakeWhatBackwardReads) {
  const auto bytes = [](const std::string& layers) {
    return plan_tensors(Network::parse("layers: [" + layers + "]", "t.yaml", {1, 28, 28}, 10), 16).bytes;
  };
  EXPECT_EQ(bytes("linear: classes"), 64U * (784 + 10));
  EXPECT_EQ(bytes("linear: 20, relu, linear: classes"), 64U * (784 + 20 + 20 + 10 + 1));
  EXPECT_EQ(bytes("linear: 20, tanh, linear: 20, add: tanh1, linear: classes"),
            64U * (784 + 2 * 20 + 10 + 20))
      << "the gradient of the sum is that of its branch";
}

TEST(TensorPlanTest, ReluAndDropoutWorkInPlace) {
  const TensorPlan plan = plan_tensors(Network::load("net", {1, 28, 28}, 10), 64);
  for (const std::size_t in_place : {2, 4, 6, 8, 9}) {
    EXPECT_EQ(plan.layers[in_place].x, plan.layers[in_place].y) << "layer " << in_place;
    EXPECT_EQ(plan.layers[in_place].dx, plan.layers[in_place].dy) << "layer " << in_place;
  }
}

/// A dropout ends the second one.
TEST(TensorPlanTest, AConvolutionRunsWithThePoolAndTheReluAfterIt) {
  const TensorPlan plan = plan_tensors(Network::load("net", {1, 28, 28}, 10), 64);
  ASSERT_EQ(plan.runs.size(), 1U);
  EXPECT_EQ(std::pair(plan.runs[0].first, plan.runs[0].last), std::pair(std::size_t{0}, std::size_t{2}));
}

/// Each layer but those of the last segment at most once more, and the last one never.
TEST(TensorPlanTest, RecomputingTakesLittleMoreThanHalfOfTheMemory) {
  const Network network = Network::load("resnet18", {3, 64, 64}, 1000);
  const TensorPlan kept = plan_tensors(network, 16), remade = plan_tensors(network, 16, {.recomputes = true});
  EXPECT_LT(remade.bytes, 0.6 * static_cast<double>(kept.bytes));
  std::vector<int> times(network.layers().size());
  for (const auto& layers : remade.again)
    for (const std::size_t layer : layers) ++times[layer];
  EXPECT_EQ(*std::ranges::max_element(times), 1);
  EXPECT_EQ(times.back(), 0);
  for (const auto& layers : kept.again) EXPECT_TRUE(layers.empty());
}

/// One large tensor in each of 16 segments: with fewer, two of a segment live at once.
TEST(TensorPlanTest, RecomputingCutsSixteenSegments) {
  std::string layers;
  for (int segment = 0; segment < 16; ++segment)
    layers += std::string("linear: 160, linear: ") + (segment < 15 ? "16, " : "classes");
  const Network network = Network::parse("layers: [" + layers + "]", "t.yaml", {1, 4, 4}, 16);
  const TensorPlan plan = plan_tensors(network, 16, {.recomputes = true});
  EXPECT_EQ(std::ranges::count_if(plan.again, [](const auto& again) { return !again.empty(); }), 15);
}

/// At the layer after the branch, and behind the sum: between them two tensors go on.
TEST(TensorPlanTest, SegmentsBeginWhereOneTensorAloneGoesOn) {
  const Network network = Network::parse(
      "layers: [linear: {name: a, out: 160}, linear: 160, linear: 160, linear: 160, add: a, linear: classes]",
      "t.yaml", {1, 4, 4}, 16);
  EXPECT_EQ(segment_begins(TensorUses(network, 16, {}), 16), (std::vector<std::size_t>{1, 5}));
}

/// Only norms and their steps run once more, each before the first layer whose backward reads it.
TEST(TensorPlanTest, LargePlansMakeOutputsOfNormsAgain) {
  const Network network = Network::load("resnet18", {3, 224, 224}, 1000);
  const TensorPlan plan = plan_tensors(network, 32);
  EXPECT_LE(plan.bytes, 415U << 20);  // 0.7 of 594 MiB with all of them kept
  std::vector<int> times(network.layers().size());
  for (std::size_t i = 0; i < plan.again.size(); ++i) {
    for (const std::size_t layer : plan.again[i]) {
      ++times[layer];
      EXPECT_LT(layer, i);
      const LayerOp op = network.layers()[layer]->op();
      EXPECT_FALSE(std::holds_alternative<Conv2dShape>(op)) << network.layers()[layer]->name();
    }
  }
  EXPECT_EQ(*std::ranges::max_element(times), 1);
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

// The order and the work of backward, as bucket planning sees them.

TEST(BackwardRangesTest, NetFinishesItsLastLayerFirst) {
  const std::vector<BackwardRange> ranges = backward_ranges(Network::load("net", {1, 28, 28}, 10));
  const double conv1 = 288000, conv2 = 640000, fc1 = 32000, fc2 = 1000;
  const std::vector<BackwardRange> expected{
      {21330, 510, fc2 + fc1}, {5280, 16050, fc1 + conv2}, {260, 5020, conv2 + conv1}, {0, 260, 0}};
  EXPECT_EQ(ranges, expected);
}

}  // namespace

}  // namespace lockstep
