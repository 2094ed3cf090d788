// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Contract of every pass: grains, padding, evaluation, dropout, and the order in which gradients get
/// ready.
#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/tensor_maxima.hpp"
#include "models/tensor_plan.hpp"
#include "tests/models/training_rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::execution_test {
namespace {

constexpr char kLayers[] =
    "  - conv2d: {out: 5, kernel: 3}\n  - dropout2d: 0.4\n  - max_pool: 2\n  - relu\n"
    "  - linear: 11\n  - relu\n  - dropout: 0.5\n  - linear: classes\n";
constexpr ImageShape kInput{2, 8, 8};
constexpr int kClasses = 6;

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

TEST(ExecutionTest, GrainsSumToTheGradientOfTheWholeBatch) {
  TrainingRig rig(kLayers, kInput, kClasses, 40);
  const double loss = rig.forward(0, 40);
  const std::vector<float> whole = rig.backward();
  std::vector<float> sum(whole.size());
  double loss_sum = 0;
  for (const auto& [first, count] : {std::pair{0, 16}, {16, 9}, {25, 1}, {26, 14}}) {
    loss_sum += rig.forward(first, count);
    const std::vector<float> part = rig.backward();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  EXPECT_NEAR(loss_sum, loss, 1e-5 * loss);
  expect_near(sum, whole, 2e-5);
}

TEST(ExecutionTest, PaddingColumnsChangeNoBitOfTheGradient) {
  TrainingRig rig(kLayers, kInput, kClasses, 21);
  const double loss = rig.forward(0, 21);
  const std::vector<float> gradients = rig.backward();
  EXPECT_EQ(rig.forward(0, 21, 123.5F), loss);
  EXPECT_EQ(rig.backward(), gradients);
}

TEST(ExecutionTest, EveryPassIsRepeatable) {
  TrainingRig rig(kLayers, kInput, kClasses, 32);
  const double loss = rig.forward(0, 32);
  const std::vector<float> gradients = rig.backward();
  rig.forward(5, 20);
  rig.backward();
  EXPECT_EQ(rig.forward(0, 32), loss);
  EXPECT_EQ(rig.backward(), gradients);
}

TEST(ExecutionTest, InputOutlivesThePass) {
  for (const char* layers :
       {"  - relu\n  - dropout: 0.5\n  - linear: 7\n  - relu\n  - linear: classes\n",
        "  - avg_pool\n  - linear: 7\n  - relu\n  - linear: classes\n",
        "  - tanh\n  - flatten: {name: a}\n  - linear: 12\n  - add: a\n  - linear: classes\n",
        "  - flatten: {name: a}\n  - linear: 12\n  - add: a\n  - linear: classes\n"}) {
    TrainingRig rig(layers, {3, 2, 2}, kClasses, 16);
    const auto input = [&] {
      return std::vector<float>(rig.execution().input(), rig.execution().input() + 12 * 16);
    };
    rig.load(0, 16);
    const std::vector<float> loaded = input();
    rig.forward(0, 16);
    EXPECT_EQ(input(), loaded) << layers;
    rig.backward();
    EXPECT_EQ(input(), loaded) << layers;
  }
}

TEST(ExecutionTest, DropoutMaskDependsOnThePositionInTheGlobalBatchAlone) {
  TrainingRig rig(kLayers, kInput, kClasses, 48);
  const PassKey whole_key{1, 2, 100}, part_key{1, 2, 116};
  rig.load(0, 48);
  const float* logits = rig.execution().forward_training(rig.weights().data(), 48, whole_key);
  const std::vector<float> whole(logits, logits + kClasses * 48);
  rig.load(16, 16);
  const float* part = rig.execution().forward_training(rig.weights().data(), 16, part_key);
  for (int c = 0; c < kClasses; ++c) {
    for (int n = 0; n < 16; ++n)
      ASSERT_EQ(part[c * 16 + n], whole[c * 48 + 16 + n]) << "class " << c << ", sample " << n;
  }
}

TEST(ExecutionTest, DropoutMaskChangesWithStepAndSeed) {
  TrainingRig rig(kLayers, kInput, kClasses, 16);
  const auto logits_of = [&](const PassKey& key) {
    rig.load(0, 16);
    const float* logits = rig.execution().forward_training(rig.weights().data(), 16, key);
    return std::vector<float>(logits, logits + kClasses * 16);
  };
  const std::vector<float> base = logits_of({1, 2, 0});
  EXPECT_NE(logits_of({1, 3, 0}), base);
  EXPECT_NE(logits_of({9, 2, 0}), base);
  EXPECT_NE(logits_of({1, 2, 16}), base);
  EXPECT_EQ(logits_of({1, 2, 0}), base);
}

/// Logits of the first samples.
std::vector<float> evaluated(TrainingRig& rig, int samples) {
  rig.load(0, samples);
  const int columns = rig.columns(samples);
  const float* logits = rig.execution().forward_evaluation(rig.weights().data(), columns);
  return {logits, logits + kClasses * columns};
}

TEST(ExecutionTest, EvaluationDropsNothing) {
  constexpr const char* kWithAndWithout[][2] = {
      {kLayers,
       "  - conv2d: {out: 5, kernel: 3}\n  - max_pool: 2\n  - relu\n  - linear: 11\n  - relu\n"
       "  - linear: classes\n"},
      {"  - dropout: 0.9\n  - linear: classes\n", "  - linear: classes\n"}};  // copies the input
  for (const auto& [with_dropout, without_dropout] : kWithAndWithout) {
    TrainingRig with(with_dropout, kInput, kClasses, 16), without(without_dropout, kInput, kClasses, 16);
    EXPECT_EQ(evaluated(with, 16), evaluated(without, 16)) << with_dropout;
  }
}

/// Logits and gradients of 16 samples, in whose images the rows and columns from `side` on are `number`.
std::vector<float> trained_with(TrainingRig& rig, int side, float number) {
  const ImageShape& image = rig.network().input_shape();
  rig.load(0, 16);
  for (int i = 0; i < image.features(); ++i) {
    if (i / image.width % image.height >= side || i % image.width >= side)
      std::fill_n(rig.execution().input() + i * 16, 16, number);
  }
  float* logits = rig.execution().forward_training(rig.weights().data(), 16, {1, 2, 0});
  std::vector<float> numbers(logits, logits + kClasses * 16);
  std::vector<float> gradients(rig.network().parameters().size);
  rig.execution().backward(logits, gradients.data(), {});
  numbers.insert(numbers.end(), gradients.begin(), gradients.end());
  return numbers;
}

/// Drops a row and a column of 5 x 5 in the second pool. So the last ones of the first pool's output are not
/// read, nor the last two of the first convolution's, nor of the input.
TEST(ExecutionTest, WhatPoolsDropIsNotComputed) {
  TrainingRig rig(
      "  - conv2d: {out: 7, kernel: 3}\n  - relu\n  - avg_pool: 2\n  - conv2d: {out: 6, kernel: 2}\n"
      "  - dropout2d: 0.4\n  - max_pool: 2\n  - tanh\n  - linear: classes\n",
      {2, 14, 14}, kClasses, 16);
  EXPECT_EQ(trained_with(rig, 12, std::numeric_limits<float>::quiet_NaN()), trained_with(rig, 12, 0));
}

TEST(ExecutionTest, WhatPoolsDropIsComputedForABranch) {
  TrainingRig rig(
      "  - conv2d: {name: a, out: 3, kernel: 3}\n  - max_pool: 2\n  - global_avg_pool: {name: b}\n"
      "  - route: a\n  - global_avg_pool\n  - add: b\n  - linear: classes\n",
      {2, 7, 7}, kClasses, 16);
  EXPECT_NE(trained_with(rig, 6, 1), trained_with(rig, 6, 0));
}

/// A dropout of nothing ends a run of layers, which are then called one after the other with all channels.
std::string in_single_layers(std::string layers) {
  for (std::size_t at = layers.find("\n  - "); at != std::string::npos; at = layers.find("\n  - ", at + 1)) {
    const std::string nothing = "\n  - dropout: {p: 0, name: d" + std::to_string(at) + "}";
    layers.insert(at, nothing);
    at += nothing.size();
  }
  return layers;
}

/// More channels than are computed at a time, whose tensors share memory as they may. First layers, whose
/// input needs no gradient, and later ones; pools before and behind activations, also of those that backward reads;
/// blocks of residual networks, whose sums and relus run with the batch norm before them, at the end of a network, too.
TEST(ExecutionTest, LayersThatRunTogetherChangeNoBit) {
  for (const std::string layers :
       {"  - conv2d: {out: 23, kernel: 3}\n  - relu\n  - avg_pool: 2\n  - conv2d: {out: 31, kernel: 2}\n"
        "  - max_pool: 2\n  - relu\n  - linear: classes\n",
        "  - conv2d: {out: 22, kernel: 3, bias: false}\n  - max_pool: 2\n  - relu\n"
        "  - max_pool: {kernel: 2, stride: 1}\n  - avg_pool: {kernel: 3, stride: 1, padding: 1}\n"
        "  - conv2d: {out: 12, kernel: 1}\n  - relu\n  - linear: classes\n",
        "  - conv2d: {out: 21, kernel: 3}\n  - relu: {name: a}\n  - relu\n  - add: a\n  - avg_pool: 2\n"
        "  - linear: classes\n",
        "  - conv2d: {out: 23, kernel: 3}\n  - leaky_relu: 0.1\n  - avg_pool: 2\n  - linear: classes\n",
        "  - conv2d: {out: 12, kernel: 10}\n  - relu\n  - max_pool: 1\n  - conv2d: {out: classes, kernel: "
        "1}\n",
        "  - conv2d: {out: 6, kernel: 3, padding: 1}\n  - batch_norm\n  - relu: {name: a}\n"
        "  - conv2d: {out: 6, kernel: 3, padding: 1}\n  - batch_norm\n  - add: a\n"
        "  - relu\n  - conv2d: {out: 8, kernel: 1, stride: 2}\n"
        "  - batch_norm: {name: c}\n  - leaky_relu: 0.1\n"
        "  - conv2d: {out: 8, kernel: 3, padding: 1}\n"
        "  - batch_norm\n  - add: c\n  - relu\n  - linear: classes\n",
        "  - batch_norm\n  - relu: {name: a}\n  - conv2d: {out: 2, kernel: 3, padding: 1}\n"
        "  - batch_norm\n  - add: a\n  - add: a\n  - batch_norm: {affine: false}\n"
        "  - add: a\n  - linear: classes\n",
        "  - conv2d: {name: a, out: 6, kernel: 3, padding: 1}\n  - batch_norm\n  - relu\n"
        "  - conv2d: {out: 6, kernel: 1}\n  - batch_norm\n  - add: a\n  - relu: {name: b}\n"
        "  - conv_transpose2d: {out: 4, kernel: 1}\n  - silu\n  - concat: b\n  - flatten\n  - linear: 20\n"
        "  - linear: classes\n",
        "  - linear: {name: a, out: classes}\n  - tanh\n  - linear: classes\n  - batch_norm\n  - add: a\n"}) {
    SCOPED_TRACE(layers);
    for (const Precision precision : {Precision::kFp32, Precision::kInt16}) {
      TrainingRig together(layers, {2, 10, 10}, kClasses, 70, precision),
          single(in_single_layers(layers), {2, 10, 10}, kClasses, 70, precision);
      std::ranges::copy(together.weights().span(), single.weights().data());
      for (const int samples : {70, 16, 33}) {
        const double loss = together.forward(0, samples);
        EXPECT_EQ(loss, single.forward(0, samples));
        EXPECT_EQ(together.backward(), single.backward());
        EXPECT_EQ(evaluated(together, samples), evaluated(single, samples));
      }
    }
  }
}

/// Layers that run once more in a plan for so many columns.
std::size_t made_again(const Network& network, int columns) {
  std::size_t count = 0;
  for (const auto& layers : plan_tensors(network, columns).again) count += layers.size();
  return count;
}

/// Sums over 16 and over 32 columns have the same cuts.
TEST(ExecutionTest, OutputsOfNormsMadeAgainHaveTheSameBits) {
  const std::string layers =
      "  - conv2d: {out: 24, kernel: 1}\n  - batch_norm\n  - relu: {name: a}\n"
      "  - conv2d: {out: 24, kernel: 1}\n  - batch_norm\n  - relu\n"
      "  - conv2d: {out: 24, kernel: 1}\n  - batch_norm\n  - add: a\n  - relu: {name: b}\n"
      "  - conv2d: {out: 24, kernel: 1, stride: 2}\n  - batch_norm: {name: c}\n"
      "  - route: b\n  - conv2d: {out: 24, kernel: 1, stride: 2}\n  - batch_norm\n  - add: c\n"
      "  - leaky_relu: 0.1\n  - global_avg_pool\n  - linear: classes\n";
  TrainingRig kept(layers, {2, 128, 128}, kClasses, 16), again(layers, {2, 128, 128}, kClasses, 32);
  EXPECT_EQ(made_again(kept.network(), 16), 0U);
  EXPECT_GT(made_again(again.network(), 32), 0U);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(kept.forward(0, 16), again.forward(0, 16));
    EXPECT_EQ(kept.backward(), again.backward());
  }
}

TEST(ExecutionTest, GradientsGetReadyLastLayerFirstAndAreFinalThen) {
  TrainingRig rig(kLayers, kInput, kClasses, 16);
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::vector<float> when_ready(rig.network().parameters().size);
  rig.forward(0, 16);
  const std::vector<float> gradients =
      rig.backward([&](std::size_t offset, std::size_t size, const float* all) {
        ranges.emplace_back(offset, size);
        std::copy_n(all + offset, size, when_ready.begin() + static_cast<std::ptrdiff_t>(offset));
      });
  EXPECT_EQ(when_ready, gradients);
  const std::size_t conv = 5 * 2 * 9 + 5, fc1 = 11 * 45 + 11, fc2 = 6 * 11 + 6;
  EXPECT_EQ(ranges,
            (std::vector<std::pair<std::size_t, std::size_t>>{{conv + fc1, fc2}, {conv, fc1}, {0, conv}}));
}

/// So that communication starts early: weights that vanish when their gradient is ready stop the data
/// gradient.
TEST(ExecutionTest, GradientsGetReadyBeforeTheDataGradientIsComputed) {
  TrainingRig rig("  - linear: 7\n  - linear: classes\n", {5, 1, 1}, kClasses, 16);
  rig.forward(0, 16);
  const std::vector<float> gradients = rig.backward([&](std::size_t offset, std::size_t size, const float*) {
    std::fill_n(rig.weights().data() + offset, size, 0.0F);
  });
  const std::size_t fc1 = 5 * 7 + 7;
  EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.begin() + fc1), std::vector<float>(fc1));
  EXPECT_NE(gradients[fc1], 0);
}

TEST(ExecutionTest, BackwardNeedsAForwardTrainingBeforeIt) {
  TrainingRig rig(kLayers, kInput, kClasses, 16);
  std::vector<float> gradients(rig.network().parameters().size);
  float* const unset = rig.execution().logits();
  EXPECT_THROW(rig.execution().backward(unset, gradients.data(), {}), InternalError);
  rig.load(0, 16);
  float* logits = rig.execution().forward_evaluation(rig.weights().data(), 16);
  EXPECT_THROW(rig.execution().backward(logits, gradients.data(), {}), InternalError);
}

TEST(ExecutionTest, APassThatWasGivenUpLeavesNothingBehind) {
  TrainingRig rig("  - conv2d: {out: 3, kernel: 3}\n  - batch_norm\n  - relu\n  - linear: classes\n", kInput,
                  kClasses, 16);
  const double loss = rig.forward(0, 16);
  BatchStatistics statistics(rig.network());
  std::vector<std::int64_t> words(most_words(cuts_of(rig.network())));
  TrainingGrain grain{.weights = rig.weights().data(), .batch = 16, .samples = 16, .key = {}};
  rig.execution().begin_training(grain);
  EXPECT_THROW(rig.execution().begin_backward(nullptr), InternalError);
  EXPECT_THROW(rig.execution().forward_to_cut(words.data()), InternalError)
      << "there is no room for statistics";
  grain.statistics = &statistics;
  rig.execution().begin_training(grain);
  EXPECT_THROW(rig.execution().forward_to_cut(nullptr), InternalError);
  rig.execution().begin_training(grain);
  EXPECT_TRUE(rig.execution().forward_to_cut(words.data()));
  EXPECT_EQ(rig.forward(0, 16), loss);
}

/// Operands are the inputs of a convolution and of a linear layer, here through flatten, and their outputs' gradients.
TEST(TensorMaximaTest, OperandsOf16BitsHaveAPlaceAndOthersNone) {
  constexpr int kColumns = 16;
  const Network network =
      Network::parse("layers:\n  - conv2d: {out: 3, kernel: 3}\n  - relu\n  - flatten\n  - linear: classes\n",
                     "rig.yaml", kInput, kClasses, UnreadLayers::kRefused, Precision::kInt16);
  TensorMaxima maxima(network.layers(), 0, kColumns);
  cpu::ColumnMaxima* const operands[] = {maxima.of_input(0), maxima.of_output_gradient(0), maxima.of_input(3),
                                         maxima.of_output_gradient(3)};
  for (const cpu::ColumnMaxima* operand : operands) ASSERT_NE(operand, nullptr);
  EXPECT_EQ(maxima.of_output(1), operands[2]);
  for (const cpu::ColumnMaxima* other :
       {maxima.of_output(0), maxima.of_output(3), maxima.of_input_gradient(0), maxima.of_output_gradient(1)})
    EXPECT_EQ(other, nullptr);
  for (std::uint32_t i = 0; i < 4; ++i) std::fill_n(operands[i]->bits, kColumns, i);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::count(operands[i]->bits, operands[i]->bits + kColumns, i), kColumns) << "operand " << i;
}

TEST(ExecutionTest, RefusesBatchesThatItHasNoRoomFor) {
  TrainingRig rig(kLayers, kInput, kClasses, 16);
  EXPECT_THROW(rig.execution().forward_evaluation(rig.weights().data(), 32), InternalError);
  EXPECT_THROW(rig.execution().forward_evaluation(rig.weights().data(), 15), InternalError);
  EXPECT_THROW(rig.execution().forward_evaluation(rig.weights().data(), 0), InternalError);
  EXPECT_THROW(Execution(rig.network(), 17), InternalError);
  EXPECT_THROW(Execution(rig.network(), 0), InternalError);
}

}  // namespace
}  // namespace lockstep::test::execution_test
