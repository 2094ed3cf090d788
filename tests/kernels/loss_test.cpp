// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Log-softmax and every loss against naive loops and finite differences, with padding, ties and broken
/// logits.
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::loss_test {
namespace {

using reference::all_near;
using reference::describe;
using reference::logit_index;
using reference::random_tensor;
using reference::widen;

// batch, samples, classes
const LossShape kShapes[] = {{16, 16, 10}, {64, 64, 10}, {64, 49, 10}, {32, 1, 3},    {112, 100, 10},
                             {16, 7, 2},   {48, 33, 26}, {16, 0, 10},  {64, 16, 100}, {16, 16, 1}};

AlignedBuffer<float> random_logits(const LossShape& s, unsigned seed, float scale = 4.0F) {
  return random_tensor(static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.classes), seed, scale);
}

std::vector<std::int32_t> random_labels(const LossShape& s, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.samples));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(generator() % static_cast<unsigned>(reference::label_count(s)));
  return labels;
}

struct Loss {
  LossSums sums;
  std::vector<float> gradient;
};

Loss run(const LossShape& shape, const AlignedBuffer<float>& logits,
         const std::vector<std::int32_t>& labels) {
  Loss result{{-1, -1}, std::vector<float>(logits.size(), NAN)};
  cpu::loss_and_gradient(shape, logits.data(), labels.data(), result.gradient.data(), &result.sums);
  return result;
}

/// Calls check(shape) for every loss of every shape.
template <typename Check>
void for_each_loss(const Check& check) {
  for (const LossShape& shape : kShapes) {
    reference::for_each_loss(shape, [&](const std::string& name, const LossShape& with_rule) {
      SCOPED_TRACE(describe(shape) + ", " + name);
      check(with_rule);
    });
  }
}

TEST(LossTest, LossAndGradientEqualNaiveLoop) {
  for_each_loss([](const LossShape& shape) {
    const auto logits = random_logits(shape, 1);
    const auto labels = random_labels(shape, 2);
    const Loss actual = run(shape, logits, labels);
    const auto expected = reference::loss_by_rule(shape, widen(logits.span()), labels);
    EXPECT_NEAR(actual.sums.loss, expected.loss, (shape.is_plain() ? 1e-6 : 2e-6) * (1 + expected.loss));
    EXPECT_TRUE(all_near(actual.gradient, expected.gradient, shape.is_plain() ? 5e-7 : 3e-6));
    EXPECT_EQ(actual.sums.not_finite, 0);
    EXPECT_EQ(actual.sums.correct, expected.correct);
  });
}

TEST(LossTest, ReferenceGradientsEqualFiniteDifferences) {
  reference::for_each_loss({5, 4, 6}, [](const std::string& name, const LossShape& shape) {
    SCOPED_TRACE(name);
    const auto logits = widen(random_logits(shape, 3).span());
    const auto labels = random_labels(shape, 4);
    const auto numeric = reference::finite_differences(logits, [&](const std::vector<double>& at) {
      return reference::loss_by_rule(shape, at, labels).loss;
    });
    const auto gradient = reference::loss_by_rule(shape, logits, labels).gradient;
    for (std::size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR(gradient[i], numeric[i], 1e-7) << "index " << i;
  });
}

TEST(LossTest, WorksInPlaceAndWithoutGradient) {
  for_each_loss([](const LossShape& shape) {
    auto logits = random_logits(shape, 8);
    const auto labels = random_labels(shape, 9);
    const Loss expected = run(shape, logits, labels);
    LossSums sums = {-1, -1};
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), nullptr, &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_EQ(sums.correct, expected.sums.correct);
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), logits.data(), &sums);
    EXPECT_EQ(sums.loss, expected.sums.loss);
    EXPECT_TRUE(std::equal(expected.gradient.begin(), expected.gradient.end(), logits.data()));
  });
}

TEST(LossTest, BitsAreTheSameOnEverySimdTarget) {
  for_each_loss([](const LossShape& shape) {
    const auto logits = random_logits(shape, 11, 20.0F);
    const auto labels = random_labels(shape, 12);
    reference::expect_same_bits(reference::all_targets(), [&] {
      const Loss loss = run(shape, logits, labels);
      std::vector<double> all = widen(loss.gradient);
      all.push_back(loss.sums.loss);
      return all;
    });
  });
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
  const Loss expected = run(narrow, logits, labels);
  const Loss actual = run(wide, padded, labels);
  EXPECT_EQ(actual.sums.loss, expected.sums.loss);
  EXPECT_EQ(actual.sums.correct, expected.sums.correct);
  for (int c = 0; c < 10; ++c) {
    for (int n = 0; n < 64; ++n) {
      const float gradient = n < 5 ? expected.gradient[logit_index(narrow, c, n)] : 0.0F;
      ASSERT_EQ(actual.gradient[logit_index(wide, c, n)], gradient) << "class " << c << " column " << n;
    }
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

TEST(CrossEntropyTest, HugeLogitsDoNotOverflowAndAnImpossibleLabelIsNotFinite) {
  const LossShape shape = {16, 3, 3};
  AlignedBuffer<float> logits(48);
  logits[logit_index(shape, 0, 0)] = 3e38F;
  logits[logit_index(shape, 1, 1)] = -3e38F;
  logits[logit_index(shape, 2, 2)] = -INFINITY;
  const Loss result = run(shape, logits, {0, 0, 2});
  EXPECT_NEAR(result.sums.loss, std::log(2.0), 1e-6) << "of the first two";
  EXPECT_EQ(result.sums.correct, 2);
  EXPECT_EQ(result.sums.not_finite, 1);
  EXPECT_EQ(result.gradient[logit_index(shape, 2, 2)], -1.0F);
}

TEST(LossTest, BrokenOutputsCountForTheirSampleOnly) {
  reference::for_each_loss({16, 2, 4}, [](const std::string& name, const LossShape& shape) {
    for (const float broken : {NAN, INFINITY}) {
      for (int c = 0; c < 4; ++c) {
        SCOPED_TRACE(name + ", " + std::to_string(broken) + " in class " + std::to_string(c));
        AlignedBuffer<float> logits(64);
        logits[logit_index(shape, 0, 0)] = 1;
        logits[logit_index(shape, c, 1)] = broken;
        const Loss result = run(shape, logits, {0, c});
        EXPECT_EQ(result.sums.not_finite, 1);
        EXPECT_TRUE(std::isfinite(result.gradient[logit_index(shape, 3, 0)]));
        EXPECT_EQ(result.gradient[logit_index(shape, 3, 2)], 0.0F) << "padding";
        if (!shape.is_plain()) continue;
        EXPECT_EQ(result.sums.correct, 1);
        EXPECT_NEAR(result.sums.loss, std::log(1 + 3 * std::exp(-1.0)), 1e-6) << "of the other sample";
        EXPECT_TRUE(std::isnan(result.gradient[logit_index(shape, 3, 1)]));
      }
    }
  });
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

TEST(LossRuleTest, HugeOutputsOfTheBinaryLossStayFinite) {
  LossShape shape = {16, 2, 2};
  shape.rule.kind = LossKind::kBinaryCrossEntropy;
  AlignedBuffer<float> x(32);
  x[logit_index(shape, 0, 0)] = 1e30F, x[logit_index(shape, 1, 0)] = -1e30F;  // right
  x[logit_index(shape, 0, 1)] = 3, x[logit_index(shape, 1, 1)] = -2e6F;       // wrong
  const Loss result = run(shape, x, {0, 1});
  EXPECT_EQ(result.sums.not_finite, 0);
  EXPECT_NEAR(result.sums.loss, (2e6 + 3 + std::log1p(std::exp(-3.0))) / 2, 0.1);
  EXPECT_EQ(result.gradient[logit_index(shape, 0, 0)], 0.0F);
  EXPECT_EQ(result.gradient[logit_index(shape, 1, 1)], -0.5F);
}

TEST(MixedLabelsTest, LossIsLinearInTheLabels) {
  LossShape shape = {16, 1, 5};
  const auto logits = random_logits(shape, 3);
  const MixedLabel second = {4, 0.25F};
  const double apart = 0.75 * run(shape, logits, {1}).sums.loss + 0.25 * run(shape, logits, {4}).sums.loss;
  shape.mixed = &second;
  EXPECT_NEAR(run(shape, logits, {1}).sums.loss, apart, 1e-6);
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
    const Loss expected = run(shape, logits, labels);
    shape.rule.label_sets = identity.data();
    const Loss actual = run(shape, logits, labels);
    EXPECT_EQ(actual.gradient, expected.gradient);
    EXPECT_EQ(actual.sums.loss, expected.sums.loss);
  }
}

TEST(LabelSetsTest, ANanIsNoAnswer) {
  LossShape shape = {16, 2, 2};
  const std::vector<std::uint8_t> none = {0, 0};
  shape.rule = {.kind = LossKind::kBinaryCrossEntropy, .label_sets = none.data()};
  AlignedBuffer<float> x(32);
  x[logit_index(shape, 0, 0)] = -1, x[logit_index(shape, 1, 0)] = 0;    // right: an output of 0 is no label
  x[logit_index(shape, 0, 1)] = -1, x[logit_index(shape, 1, 1)] = NAN;  // wrong
  EXPECT_EQ(run(shape, x, {0, 0}).sums.correct, 1);
  EXPECT_EQ(run(shape, x, {0, 0}).sums.not_finite, 1);
}

// How far mean gradients are from double precision.

/// Distance for two classes with smoothed targets: the median of many batches, relative.
double distance_of_pairs(float smoothing, bool weighted) {
  constexpr int kBatch = 64, kBatches = 401;
  LossShape shape = {kBatch, kBatch, 2};
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> weight(0.2F, 3);
  std::vector<double> distances;
  for (unsigned seed = 0; seed < kBatches; ++seed) {
    const float weights[] = {weight(generator), weight(generator)};
    shape.rule = {.label_share = 1 - smoothing, .spread = smoothing / 2};
    if (weighted) shape.rule.class_weights = weights, shape.rule.weight_sum = weights[0] + weights[1];
    const auto logits = random_tensor(2 * kBatch, seed, 1.0F);
    std::vector<std::int32_t> labels(kBatch);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(generator() % 2);
    std::vector<float> got(2 * kBatch);
    LossSums sums;
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), got.data(), &sums);
    const auto wanted = reference::loss_by_rule(shape, widen(logits.span()), labels).gradient;
    double error = 0, size = 0;
    for (std::size_t c = 0; c < 2; ++c) {
      double sum = 0, exact = 0;
      for (std::size_t n = c * kBatch; n < (c + 1) * kBatch; ++n) sum += got[n], exact += wanted[n];
      error += (sum - exact) * (sum - exact), size += exact * exact;
    }
    distances.push_back(std::sqrt(error / size));
  }
  std::ranges::nth_element(distances, distances.begin() + kBatches / 2);
  return distances[kBatches / 2];
}

/// The softmax times all targets less the target, as of more classes, is 1.1e-7, 1.1e-7 and 3.7e-7 away.
TEST(LossAccuracyTest, GradientsOfTwoSmoothedClassesDoNotCancel) {
  EXPECT_LT(distance_of_pairs(0.1F, true), 8e-8);
  EXPECT_LT(distance_of_pairs(0.3F, true), 8e-8);
  EXPECT_LT(distance_of_pairs(0.3F, false), 8e-8);
}

TEST(LogSoftmaxTest, EqualsNaiveLoopAndWorksInPlaceOnEverySimdTarget) {
  for (const LossShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto logits = random_logits(shape, 10, 20.0F);
    const auto expected = reference::log_softmax(shape, widen(logits.span()));
    std::vector<float> y(logits.size());
    reference::expect_same_bits(reference::all_targets(), [&] {
      cpu::log_softmax(shape, logits.data(), y.data());
      return y;
    });
    EXPECT_TRUE(all_near(y, expected, 5e-7));
    cpu::log_softmax(shape, logits.data(), logits.data());
    EXPECT_TRUE(std::equal(y.begin(), y.end(), logits.data()));
  }
}

}  // namespace
}  // namespace lockstep::loss_test
