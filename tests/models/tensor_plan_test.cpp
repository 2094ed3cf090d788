// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of tensors on a CPU: lifetimes, what is made again, and the order of backward.
#include "models/tensor_plan.hpp"

#include "common/error.hpp"
#include "models/batch_layer.hpp"
#include "models/execution.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/memory_plan.hpp"
#include "models/network.hpp"
#include "models/repeated_layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

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

/// One large tensor in each segment: with fewer, two of a segment live at once. For 17 of them none of the plans has
/// less memory than that of 5 segments.
TEST(TensorPlanTest, RecomputingCutsSixteenSegments) {
  const auto segments_made_again = [](int pairs) {
    std::string layers;
    for (int pair = 1; pair <= pairs; ++pair)
      layers += std::string("linear: 160, linear: ") + (pair < pairs ? "16, " : "classes");
    const Network network = Network::parse("layers: [" + layers + "]", "t.yaml", {1, 4, 4}, 16);
    const TensorPlan plan = plan_tensors(network, 16, {.recomputes = true});
    return std::ranges::count_if(plan.again, [](const auto& again) { return !again.empty(); });
  };
  EXPECT_EQ(segments_made_again(16), 15);
  EXPECT_EQ(segments_made_again(17), 4);
}

/// Sums, gates, joined channels, and norms with their steps.
const char* const kJoined = R"(
layers: [conv2d: {out: 6, kernel: 3, padding: 1}, batch_norm, relu: {name: a}, conv2d: {out: 6, kernel: 3, padding: 1},
         batch_norm, add: a, relu: {name: b}, max_pool: 2, conv2d: {out: 8, kernel: 1}, leaky_relu: {name: c, slope: 0.1},
         route: b, dropout2d: 0.2, avg_pool: 2, concat: c, group_norm: {name: d, groups: 2}, silu: {name: e},
         global_avg_pool, linear: 14, hardsigmoid, multiply: e, add: d, flatten, relu, dropout: 0.5, linear: classes]
)";
/// Branches of branches, and two parts that none of them crosses: [0, 8) and the rest.
const char* const kBranches = R"(
layers: [conv2d: {name: a, out: 4, kernel: 3, padding: 1}, relu: {name: b},
         conv2d: {name: c, out: 4, kernel: 3, padding: 1}, add: a, conv2d: {name: d, out: 4, kernel: 3, padding: 1},
         add: c, add: b, add: d, linear: {name: e, out: 12}, linear: 12, add: e, linear: classes]
)";

Network joined() {
  return Network::parse(kJoined, "joined.yaml", {3, 12, 12}, 5);
}

Network residual() {
  return Network::load("resnet8", {3, 32, 32}, 10);
}

/// Computed by another program, from what the headers say.
TEST(TensorPlanTest, MemoryOfANetworkIsNoMoreThanItsLifetimesTake) {
  const auto bytes = [](const Network& network, int batch, const NetworkPart& part = {}) {
    return plan_tensors(network, batch, part).bytes;
  };
  EXPECT_EQ(bytes(joined(), 16), 428288U);
  EXPECT_EQ(bytes(joined(), 16, {.recomputes = true}), 324864U);
  EXPECT_EQ(bytes(residual(), 16), 12402688U);
  EXPECT_EQ(bytes(residual(), 16, {.recomputes = true}), 7634944U);
  EXPECT_EQ(bytes(residual(), 1024), 587202560U) << "of 793772032 without the norms that are made again";
  EXPECT_EQ(bytes(residual(), 512), 587202560U / 2) << "still of more than 256 MiB";
  EXPECT_EQ(bytes(residual(), 256), 793772032U / 4) << "which is not much";
  const Network branches = Network::parse(kBranches, "branches.yaml", {2, 6, 6}, 5);
  EXPECT_EQ(bytes(branches, 16), 60224U);
  EXPECT_EQ(bytes(branches, 16, {.first = 0, .last = 8, .takes_output_gradient = true}), 60224U);
  EXPECT_EQ(bytes(branches, 16, {.first = 8, .gives_input_gradient = true}), 19968U);
  EXPECT_THROW(bytes(branches, 16, {.first = 1}), InternalError) << "a branch leads into it";
  EXPECT_THROW(layers_of(branches, {.first = 12}), InternalError) << "there is no such layer";
}

/// The layers that run once more, by the layer before whose backward they do.
std::map<std::size_t, std::vector<std::size_t>> again_of(const TensorPlan& plan) {
  std::map<std::size_t, std::vector<std::size_t>> again;
  for (std::size_t i = 0; i < plan.again.size(); ++i)
    if (!plan.again[i].empty()) again[i] = plan.again[i];
  return again;
}

TEST(TensorPlanTest, LayersRunOnceMoreRightBeforeTheyAreNeeded) {
  using Again = std::map<std::size_t, std::vector<std::size_t>>;
  EXPECT_EQ(again_of(plan_tensors(residual(), 16, {.recomputes = true})),
            (Again{{2, {0}}, {9, {3, 4, 5, 6}}, {19, {10, 12, 13, 14, 15, 16}}}));
  EXPECT_EQ(again_of(plan_tensors(joined(), 16, {.recomputes = true})),
            (Again{{2, {0}}, {13, {3, 4, 5, 6, 7, 8, 9}}}));
  const Again norms{
      {6, {4, 5}}, {13, {1, 2, 7, 8, 9, 12}}, {16, {14, 15}}, {23, {17, 18, 19, 22}}, {26, {24, 25}}};
  EXPECT_EQ(again_of(plan_tensors(residual(), 1024)), norms);
  EXPECT_EQ(segment_begins(TensorUses(residual(), 16, {}), 4), (std::vector<std::size_t>{3, 10, 20}));
}

TEST(TensorPlanTest, NormsRunWithTheirStepsAndConvolutionsWithLayersOfChannels) {
  const TensorPlan plan = plan_tensors(joined(), 16);
  std::string runs;
  for (const ChannelRun& run : plan.runs)
    runs += fmt::format("{}-{}{} ", run.first, run.last, run.has_steps ? " steps" : "");
  EXPECT_EQ(runs, "1-2 steps 4-6 steps 8-9 ");
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

/// The norm has 16 of 8,000 numbers that live at once.
TEST(TensorPlanTest, LargePlansKeepNormsThatAreASmallShareOfThem) {
  const TensorPlan plan =
      plan_tensors(Network::parse("layers: [linear: 16, batch_norm, linear: 4000, linear: classes]", "t.yaml",
                                  {1, 4, 4}, 5),
                   32768);
  EXPECT_GT(plan.bytes, std::size_t{256} << 20);
  EXPECT_TRUE(again_of(plan).empty());
}

TEST(TensorPlanTest, NothingBeforeTheFirstTrainedLayerHasAGradient) {
  const Network network =
      Network::parse("layers: [avg_pool, relu, linear: 4, relu, linear: classes]", "t.yaml", {1, 8, 8}, 3);
  const TensorPlan plan = plan_tensors(network, 16);
  EXPECT_EQ(plan.first_trained, 2U);
  EXPECT_EQ(plan.layers[2].dx, TensorPlan::kNone);
  EXPECT_NE(plan.layers[3].dx, TensorPlan::kNone);
  EXPECT_EQ(plan.layers[4].dy, TensorPlan::kNone);
  const Network branched = Network::parse(
      "layers: [relu: {name: a}, conv2d: {out: 1, kernel: 3, padding: 1}, concat: a, linear: classes]",
      "t.yaml", {1, 8, 8}, 3);
  EXPECT_EQ(plan_tensors(branched, 16).layers[2].dbranch, TensorPlan::kNone);
}

// Scratch memory of kernels.

/// Filters, twice their taps and 208 Ki numbers for all. Two terms of the first one's parameters. A frame of 11 x 11
/// pixels, and 96 Ki for a stride. A tile, the pixels that it reads, and what stands in for a bias. Of a transposed
/// convolution three terms of its parameters, and two of a gradient that is not read.
TEST(ScratchMemoryTest, IsCountedForEachLayer) {
  const auto scratch = [](const std::string& layer) {
    const Network network =
        Network::parse("layers: [" + layer + ", linear: classes]", "s.yaml", {2, 9, 9}, 3);
    return network.layers().front()->scratch_numbers(64);
  };
  constexpr std::uint64_t kPacked = 208 * 1024, kRows = 96 * 1024;
  EXPECT_EQ(scratch("conv2d: {out: 4, kernel: 3}"), 72 + 36 + kPacked + 2 * 76);
  EXPECT_EQ(scratch("conv2d: {out: 4, kernel: 3, stride: 2, padding: 1}"),
            72 + 36 + kPacked + 2 * 11 * 11 * 64 + kRows);
  for (const char* kernel : {"[1, 3]", "[3, 1]"})
    EXPECT_EQ(scratch(fmt::format("conv2d: {{out: 4, kernel: {}}}", kernel)), 24 + 12 + kPacked + 2 * 28)
        << kernel;
  EXPECT_EQ(scratch("conv2d: {out: 4, kernel: 1}"), 8 + 4 + kPacked + 64 * 4 + 3 * 12);
  EXPECT_EQ(scratch("conv2d: {out: 4, kernel: 1, stride: 2, bias: false}"),
            8 + 4 + kPacked + 64 * 4 + 2 * 5 * 5 * 64 + kRows + 2 * 4);
  EXPECT_EQ(scratch("conv_transpose2d: {out: 4, kernel: 3}"), 72 + 72 + kPacked + 3 * 76 + 4 + 2 * 76);
  EXPECT_EQ(scratch("conv_transpose2d: {out: 4, kernel: 3, bias: false}"),
            72 + 72 + kPacked + 3 * 72 + 4 + 2 * 72 + 2 * 4);
  EXPECT_EQ(scratch("linear: 20"), (162U + 16) * 64);
  EXPECT_EQ(scratch("linear: {out: 300, bias: false}"), 300U * 64 + 2 * 300);
  EXPECT_EQ(scratch("relu"), 0U);
  EXPECT_EQ(kernel_scratch_bytes(
                Network::parse("layers: [batch_norm, global_avg_pool]", "s.yaml", {2, 9, 9}, 2), 64),
            0U);
}

// Layers that cut a network.

/// A number of one sample alone says nothing of how samples differ.
TEST(CutsTest, NormsOfOnePixelNeedTwoSamples) {
  const Network network = Network::parse(
      "layers: [conv2d: {out: 3, kernel: [8, 7]}, batch_norm, linear: 5, batch_norm, linear: classes]",
      "c.yaml", {1, 8, 8}, 2);
  const std::vector<Cut> cuts = cuts_of(network);
  ASSERT_EQ(cuts.size(), 2U);
  EXPECT_EQ(cuts[0].over_batch->least_samples(), 1) << "there are two pixels";
  EXPECT_EQ(cuts[1].over_batch->least_samples(), 2);
  EXPECT_EQ(most_words(cuts), cuts[1].over_batch->words());
  EXPECT_EQ(most_words({}), 0U);
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
