// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Log-softmax and cross-entropy against naive loops and finite differences, with padding, ties and broken
/// logits.
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <limits>
#include <string>

namespace lockstep::loss_test {
namespace {

using reference::all_near;
using reference::logit_index;
using reference::random_tensor;
using reference::widen;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// batch, samples, classes
const LossShape kShapes[] = {{16, 16, 10}, {64, 64, 10}, {64, 49, 10}, {32, 1, 3},    {112, 100, 10},
                             {16, 7, 2},   {48, 33, 26}, {16, 0, 10},  {64, 16, 100}, {16, 16, 1}};

std::string describe(const LossShape& s) {
  return "batch " + std::to_string(s.batch) + ", samples " + std::to_string(s.samples) + ", classes " +
         std::to_string(s.classes);
}

AlignedBuffer<float> random_logits(const LossShape& s, unsigned seed, float scale = 4.0F) {
  return random_tensor(static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.classes), seed, scale);
}

std::vector<std::int32_t> random_labels(const LossShape& s, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.samples));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(generator() % static_cast<unsigned>(s.classes));
  return labels;
}

struct CrossEntropy {
  LossSums sums;
  std::vector<float> gradient;
};

CrossEntropy run(const LossShape& shape, const AlignedBuffer<float>& logits,
                 const std::vector<std::int32_t>& labels) {
  CrossEntropy result{{-1, -1}, std::vector<float>(logits.size(), kNan)};
  cpu::loss_and_gradient(shape, logits.data(), labels.data(), result.gradient.data(), &result.sums);
  return result;
}

TEST(CrossEntropyTest, LossAndGradientEqualNaiveLoop) {
  for (const LossShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto logits = random_logits(shape, 1);
    const auto labels = random_labels(shape, 2);
    const CrossEntropy actual = run(shape, logits, labels);
    const double expected = reference::cross_entropy(shape, widen(logits.span()), labels);
    EXPECT_NEAR(actual.sums.loss, expected, 1e-6 * (1 + expected));
    EXPECT_TRUE(all_near(actual.gradient,
                         reference::cross_entropy_gradient(shape, widen(logits.span()), labels), 5e-7));
  }
}

TEST(CrossEntropyTest, ReferenceGradientEqualsFiniteDifferences) {
  const LossShape shape = {5, 4, 6};
  const auto logits = widen(random_logits(shape, 3).span());
  const auto labels = random_labels(shape, 4);
  const auto numeric = reference::finite_differences(
      logits, [&](const std::vector<double>& at) { return reference::cross_entropy(shape, at, labels); });
  const auto gradient = reference::cross_entropy_gradient(shape, logits, labels);
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(gradient[i], numeric[i], 1e-8) << "index " << i;
}

TEST(CrossEntropyTest, PaddingColumnsDoNotMatter) {
  const LossShape narrow = {16, 5, 10};
  const LossShape wide = {64, 5, 10};
  const auto logits = random_logits(narrow, 5);
  const auto labels = random_labels(narrow, 6);
  auto padded = random_logits(wide, 7, 1e30F);
  for (int c = 0; c < 10; ++c) {
    for (int n = 0; n < 5; ++n) padded[logit_index(wide, c, n)] = logits[logit_index(narrow, c, n)];
  }
  const CrossEntropy expected = run(narrow, logits, labels);
  const CrossEntropy actual = run(wide, padded, labels);
  EXPECT_EQ(actual.sums.loss, expected.sums.loss);
  EXPECT_EQ(actual.sums.correct, expected.sums.correct);
  for (int c = 0; c < 10; ++c) {
    for (int n = 0; n < 64; ++n) {
      const float gradient = n < 5 ? expected.gradient[logit_index(narrow, c, n)] : 0.0F;
      ASSERT_EQ(actual.gradient[logit_index(wide, c, n)], gradient) << "class " << c << " column " << n;
    }
  }
}

TEST(CrossEntropyTest, WorksInPlaceAndWithoutGradient) {
  for (const LossShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto logits = random_logits(shape, 8);
    const auto labels = random_labels(shape, 9);
    const CrossEntropy expected = run(shape, logits, labels);
    LossSums sums = {-1, -1};
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), nullptr, &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_EQ(sums.correct, expected.sums.correct);
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), logits.data(), &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_TRUE(std::equal(expected.gradient.begin(), expected.gradient.end(), logits.data()));
  }
}

TEST(CrossEntropyTest, FirstOfEqualMaximaCounts) {
  const LossShape shape = {16, 3, 4};
  AlignedBuffer<float> logits(64);
  for (int n = 0; n < 3; ++n) logits[logit_index(shape, 1, n)] = logits[logit_index(shape, 3, n)] = 5;
  EXPECT_EQ(run(shape, logits, {1, 1, 1}).sums.correct, 3);
  EXPECT_EQ(run(shape, logits, {3, 1, 0}).sums.correct, 1);
  EXPECT_EQ(run(shape, AlignedBuffer<float>(64), {0, 0, 3}).sums.correct, 2);
}

TEST(CrossEntropyTest, HugeLogitsDoNotOverflow) {
  const LossShape shape = {16, 2, 3};
  AlignedBuffer<float> logits(48);
  logits[logit_index(shape, 0, 0)] = 3e38F;
  logits[logit_index(shape, 1, 1)] = -3e38F;
  const CrossEntropy result = run(shape, logits, {0, 0});
  EXPECT_NEAR(result.sums.loss, std::log(2.0), 1e-6);
  EXPECT_EQ(result.sums.correct, 2);
  EXPECT_EQ(result.sums.not_finite, 0);
}

TEST(CrossEntropyTest, ImpossibleLabelIsCountedAsNotFinite) {
  const LossShape shape = {16, 1, 3};
  AlignedBuffer<float> logits(48);
  logits[logit_index(shape, 2, 0)] = -kInfinity;
  const CrossEntropy result = run(shape, logits, {2});
  EXPECT_EQ(result.sums.not_finite, 1);
  EXPECT_EQ(result.sums.loss, 0);
  EXPECT_EQ(result.gradient[logit_index(shape, 2, 0)], -1.0F);
}

TEST(CrossEntropyTest, BrokenLogitsGiveNanForTheirSampleOnly) {
  const LossShape shape = {16, 2, 4};
  for (const float broken : {kNan, kInfinity}) {
    for (int c = 0; c < 4; ++c) {
      AlignedBuffer<float> logits(64);
      logits[logit_index(shape, 0, 0)] = 1;
      logits[logit_index(shape, c, 1)] = broken;
      const CrossEntropy result = run(shape, logits, {0, c});
      EXPECT_EQ(result.sums.not_finite, 1) << broken << " in class " << c;
      EXPECT_NEAR(result.sums.loss, std::log(1 + 3 * std::exp(-1.0)), 1e-6) << "of the other sample";
      EXPECT_EQ(result.sums.correct, 1) << broken << " in class " << c;
      EXPECT_TRUE(std::isnan(result.gradient[logit_index(shape, 3, 1)]));
      EXPECT_TRUE(std::isfinite(result.gradient[logit_index(shape, 3, 0)]));
      EXPECT_EQ(result.gradient[logit_index(shape, 3, 2)], 0.0F) << "padding";
    }
  }
}

TEST(LossRuleTest, LossAndGradientEqualNaiveLoop) {
  for (LossShape shape : kShapes) {
    const std::vector<float> weights = reference::tried_weights(shape.classes);
    for (const auto& [name, rule] : reference::tried_rules(shape.classes, weights)) {
      SCOPED_TRACE(describe(shape) + ", " + name);
      shape.rule = rule;
      const auto logits = random_logits(shape, 13);
      const auto labels = random_labels(shape, 14);
      const CrossEntropy actual = run(shape, logits, labels);
      const auto expected = reference::loss_by_rule(shape, widen(logits.span()), labels);
      EXPECT_NEAR(actual.sums.loss, expected.loss, 2e-6 * (1 + expected.loss));
      EXPECT_TRUE(all_near(actual.gradient, expected.gradient, 3e-6));
      EXPECT_EQ(actual.sums.not_finite, 0);
      LossShape plain = shape;
      plain.rule = {};
      EXPECT_EQ(actual.sums.correct, run(plain, logits, labels).sums.correct);
    }
  }
}

TEST(LossRuleTest, ReferenceGradientsEqualFiniteDifferences) {
  LossShape shape = {5, 4, 6};
  const std::vector<float> weights = reference::tried_weights(shape.classes);
  const auto logits = widen(random_logits(shape, 3).span());
  const auto labels = random_labels(shape, 4);
  for (const auto& [name, rule] : reference::tried_rules(shape.classes, weights)) {
    SCOPED_TRACE(name);
    shape.rule = rule;
    const auto numeric = reference::finite_differences(logits, [&](const std::vector<double>& at) {
      return reference::loss_by_rule(shape, at, labels).loss;
    });
    const auto gradient = reference::loss_by_rule(shape, logits, labels).gradient;
    for (std::size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR(gradient[i], numeric[i], 1e-7) << "index " << i;
  }
}

TEST(LossRuleTest, WorksInPlaceAndWithoutGradient) {
  for (LossShape shape : kShapes) {
    const std::vector<float> weights = reference::tried_weights(shape.classes);
    for (const auto& [name, rule] : reference::tried_rules(shape.classes, weights)) {
      SCOPED_TRACE(describe(shape) + ", " + name);
      shape.rule = rule;
      auto logits = random_logits(shape, 8);
      const auto labels = random_labels(shape, 9);
      const CrossEntropy expected = run(shape, logits, labels);
      LossSums sums = {-1, -1};
      cpu::loss_and_gradient(shape, logits.data(), labels.data(), nullptr, &sums);
      EXPECT_EQ(sums.loss, expected.sums.loss);
      cpu::loss_and_gradient(shape, logits.data(), labels.data(), logits.data(), &sums);
      EXPECT_EQ(sums.loss, expected.sums.loss);
      EXPECT_TRUE(std::equal(expected.gradient.begin(), expected.gradient.end(), logits.data()));
    }
  }
}

TEST(LossRuleTest, WeightsOfOneChangeNoBit) {
  for (const LossShape& plain : kShapes) {
    SCOPED_TRACE(describe(plain));
    const std::vector<float> ones(static_cast<std::size_t>(plain.classes), 1.0F);
    LossShape weighted = plain;
    weighted.rule.class_weights = ones.data();
    weighted.rule.weight_sum = static_cast<float>(plain.classes);
    const auto logits = random_logits(plain, 15);
    const auto labels = random_labels(plain, 16);
    EXPECT_EQ(run(weighted, logits, labels).sums.loss, run(plain, logits, labels).sums.loss);
    EXPECT_EQ(run(weighted, logits, labels).gradient, run(plain, logits, labels).gradient);
  }
}

TEST(LossRuleTest, BrokenOutputsAreCounted) {
  LossShape shape = {16, 2, 4};
  const std::vector<float> weights = reference::tried_weights(4);
  for (const auto& [name, rule] : reference::tried_rules(4, weights)) {
    SCOPED_TRACE(name);
    shape.rule = rule;
    for (const float broken : {kNan, kInfinity}) {
      AlignedBuffer<float> logits(64);
      logits[logit_index(shape, 0, 0)] = 1;
      logits[logit_index(shape, 2, 1)] = broken;
      const CrossEntropy result = run(shape, logits, {0, 3});
      EXPECT_EQ(result.sums.not_finite, 1) << broken;
      EXPECT_EQ(result.sums.correct, 1) << broken;
      EXPECT_TRUE(std::isfinite(result.gradient[logit_index(shape, 3, 0)]));
      EXPECT_EQ(result.gradient[logit_index(shape, 2, 2)], 0.0F) << "padding";
    }
  }
}

TEST(LossRuleTest, HugeOutputsOfTheBinaryLossStayFinite) {
  LossShape shape = {16, 2, 2};
  shape.rule.kind = LossKind::kBinaryCrossEntropy;
  AlignedBuffer<float> x(32);
  x[logit_index(shape, 0, 0)] = 1e30F, x[logit_index(shape, 1, 0)] = -1e30F;  // right
  x[logit_index(shape, 0, 1)] = 3, x[logit_index(shape, 1, 1)] = -2e6F;       // wrong
  const CrossEntropy result = run(shape, x, {0, 1});
  EXPECT_EQ(result.sums.not_finite, 0);
  EXPECT_NEAR(result.sums.loss, (2e6 + 3 + std::log1p(std::exp(-3.0))) / 2, 0.1);
  EXPECT_EQ(result.gradient[logit_index(shape, 0, 0)], 0.0F);
  EXPECT_EQ(result.gradient[logit_index(shape, 1, 1)], -0.5F);
}

TEST(LossRuleTest, BitsAreTheSameOnEverySimdTarget) {
  for (LossShape shape : kShapes) {
    const std::vector<float> weights = reference::tried_weights(shape.classes);
    for (const auto& [name, rule] : reference::tried_rules(shape.classes, weights)) {
      SCOPED_TRACE(describe(shape) + ", " + name);
      shape.rule = rule;
      const auto logits = random_logits(shape, 11, 20.0F);
      const auto labels = random_labels(shape, 12);
      reference::expect_same_bits(reference::all_targets(),
                                  [&] { return run(shape, logits, labels).gradient; });
      reference::expect_same_bits(reference::all_targets(),
                                  [&] { return std::vector<double>{run(shape, logits, labels).sums.loss}; });
    }
  }
}

/// Each shape with each rule of the cross-entropy, and second labels.
template <typename Check>
void for_each_mixed(const Check& check) {
  for (LossShape shape : kShapes) {
    const std::vector<float> weights = reference::tried_weights(shape.classes);
    auto rules = reference::tried_rules(shape.classes, weights);
    rules.push_back({"alone", {}});
    const auto second = reference::tried_second_labels(shape.samples, shape.classes);
    shape.mixed = second.data();
    for (const auto& [name, rule] : rules) {
      if (rule.kind != LossKind::kCrossEntropy || shape.samples == 0) continue;
      SCOPED_TRACE(describe(shape) + ", " + name);
      shape.rule = rule;
      check(shape, random_logits(shape, 13), random_labels(shape, 14));
    }
  }
}

TEST(MixedLabelsTest, LossAndGradientEqualNaiveLoop) {
  for_each_mixed([](const LossShape& shape, const auto& logits, const auto& labels) {
    const CrossEntropy actual = run(shape, logits, labels);
    const auto expected = reference::loss_by_rule(shape, widen(logits.span()), labels);
    EXPECT_NEAR(actual.sums.loss, expected.loss, 2e-6 * (1 + expected.loss));
    EXPECT_TRUE(all_near(actual.gradient, expected.gradient, 3e-6));
    LossShape plain = shape;
    plain.rule = {}, plain.mixed = nullptr;
    EXPECT_EQ(actual.sums.correct, run(plain, logits, labels).sums.correct);
  });
}

TEST(MixedLabelsTest, LossIsLinearInTheLabels) {
  LossShape shape = {16, 1, 5};
  const auto logits = random_logits(shape, 3);
  const MixedLabel second = {4, 0.25F};
  const double apart = 0.75 * run(shape, logits, {1}).sums.loss + 0.25 * run(shape, logits, {4}).sums.loss;
  shape.mixed = &second;
  EXPECT_NEAR(run(shape, logits, {1}).sums.loss, apart, 1e-6);
}

TEST(MixedLabelsTest, WorkInPlaceAndWithoutGradientOnEverySimdTarget) {
  for_each_mixed([](const LossShape& shape, auto logits, const auto& labels) {
    const CrossEntropy expected = run(shape, logits, labels);
    reference::expect_same_bits(reference::all_targets(),
                                [&] { return run(shape, logits, labels).gradient; });
    reference::expect_same_bits(reference::all_targets(),
                                [&] { return std::vector<double>{run(shape, logits, labels).sums.loss}; });
    LossSums sums = {-1, -1};
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), nullptr, &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), logits.data(), &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_TRUE(std::equal(expected.gradient.begin(), expected.gradient.end(), logits.data()));
  });
}

/// Each shape with labels that are rows of a table of seven: all classes in the first, none in the second.
template <typename Check>
void for_each_label_sets(const Check& check) {
  for (LossShape shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto sets = reference::tried_label_sets(shape.classes);
    shape.rule = {.kind = LossKind::kBinaryCrossEntropy, .label_sets = sets.data()};
    LossShape rows = shape;
    rows.classes = reference::kTriedLabelSets;
    check(shape, random_logits(shape, 23), random_labels(rows, 24));
  }
}

TEST(LabelSetsTest, LossAndGradientEqualNaiveLoop) {
  for_each_label_sets([](const LossShape& shape, const auto& logits, const auto& labels) {
    const CrossEntropy actual = run(shape, logits, labels);
    double loss = 0;
    std::int64_t correct = 0;
    std::vector<double> gradient(logits.size(), 0);
    for (int n = 0; n < shape.samples; ++n) {
      bool is_correct = true;
      for (int c = 0; c < shape.classes; ++c) {
        const std::size_t i = logit_index(shape, c, n);
        const bool target =
            shape.rule.label_sets[labels[static_cast<std::size_t>(n)] * shape.classes + c] != 0;
        const double x = logits[i];
        loss += (std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0) - (target ? x : 0)) / shape.classes;
        gradient[i] = (1 / (1 + std::exp(-x)) - (target ? 1 : 0)) / shape.classes;
        is_correct = is_correct && (x > 0) == target;
      }
      correct += is_correct ? 1 : 0;
    }
    EXPECT_NEAR(actual.sums.loss, loss, 2e-6 * (1 + loss));
    EXPECT_TRUE(all_near(actual.gradient, gradient, 1e-6));
    EXPECT_EQ(actual.sums.correct, correct);
  });
}

TEST(LabelSetsTest, OneLabelEachIsTheLossOfOneLabel) {
  for (LossShape shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto classes = static_cast<std::size_t>(shape.classes);
    std::vector<std::uint8_t> identity(classes * classes);
    for (std::size_t c = 0; c < classes; ++c) identity[c * classes + c] = 1;
    const auto logits = random_logits(shape, 25);
    const auto labels = random_labels(shape, 26);
    shape.rule.kind = LossKind::kBinaryCrossEntropy;
    const CrossEntropy expected = run(shape, logits, labels);
    shape.rule.label_sets = identity.data();
    const CrossEntropy actual = run(shape, logits, labels);
    EXPECT_EQ(actual.gradient, expected.gradient);
    EXPECT_EQ(actual.sums.loss, expected.sums.loss);
  }
}

TEST(LabelSetsTest, WorkInPlaceAndWithoutGradientOnEverySimdTarget) {
  for_each_label_sets([](const LossShape& shape, AlignedBuffer<float> logits, const auto& labels) {
    reference::expect_same_bits(reference::all_targets(),
                                [&] { return run(shape, logits, labels).gradient; });
    reference::expect_same_bits(reference::all_targets(),
                                [&] { return std::vector<double>{run(shape, logits, labels).sums.loss}; });
    const CrossEntropy expected = run(shape, logits, labels);
    LossSums sums = {-1, -1};
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), nullptr, &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_EQ(sums.correct, expected.sums.correct);
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), logits.data(), &sums);
    EXPECT_TRUE(std::equal(expected.gradient.begin(), expected.gradient.end(), logits.data()));
  });
}

TEST(LabelSetsTest, ANanIsNoAnswer) {
  LossShape shape = {16, 2, 2};
  const std::vector<std::uint8_t> none = {0, 0};
  shape.rule = {.kind = LossKind::kBinaryCrossEntropy, .label_sets = none.data()};
  AlignedBuffer<float> x(32);
  x[logit_index(shape, 0, 0)] = -1, x[logit_index(shape, 1, 0)] = 0;     // right: an output of 0 is no label
  x[logit_index(shape, 0, 1)] = -1, x[logit_index(shape, 1, 1)] = kNan;  // wrong
  EXPECT_EQ(run(shape, x, {0, 0}).sums.correct, 1);
  EXPECT_EQ(run(shape, x, {0, 0}).sums.not_finite, 1);
}

TEST(LogSoftmaxTest, EqualsNaiveLoopAndWorksInPlace) {
  for (const LossShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto logits = random_logits(shape, 10);
    const auto expected = reference::log_softmax(shape, widen(logits.span()));
    AlignedBuffer<float> y(logits.size());
    cpu::log_softmax(shape, logits.data(), y.data());
    EXPECT_TRUE(all_near(y.span(), expected, 5e-7));
    cpu::log_softmax(shape, logits.data(), logits.data());
    EXPECT_TRUE(std::equal(y.span().begin(), y.span().end(), logits.data()));
  }
}

TEST(LossTest, BitsAreTheSameOnEverySimdTarget) {
  for (const LossShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    reference::expect_same_bits(reference::all_targets(), [&] {
      const auto logits = random_logits(shape, 11, 20.0F);
      std::vector<float> all = run(shape, logits, random_labels(shape, 12)).gradient;
      all.resize(2 * logits.size());
      cpu::log_softmax(shape, logits.data(), all.data() + logits.size());
      return all;
    });
    reference::expect_same_bits(reference::all_targets(), [&] {
      return std::vector<double>{
          run(shape, random_logits(shape, 11, 20.0F), random_labels(shape, 12)).sums.loss};
    });
  }
}

}  // namespace
}  // namespace lockstep::loss_test
