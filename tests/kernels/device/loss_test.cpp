// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Losses on a device: the bits of the CPU, ties, broken logits, and the counters that a step sends around.
#include "common/error.hpp"
#include "tests/kernels/device/cpu_columns.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::loss_test {
namespace {

using reference::describe;
using reference::logit_index;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kLossLimit = 1e6;

LossShape loss_shape(int batch, int classes) {
  return {batch, batch, classes};
}

std::vector<LossShape> all_shapes() {
  std::vector<LossShape> shapes;
  for (const int batch : {1, 17, 100, 300, 32, 64})
    for (const int classes : {1, 2, 10, 37, 16, 5, 64}) shapes.push_back(loss_shape(batch, classes));
  return shapes;
}

std::vector<double> random_logits(const LossShape& s, double scale) {
  auto logits = random_numbers(static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.classes), 20);
  for (double& logit : logits) logit = static_cast<double>(static_cast<float>(logit * scale));
  return logits;
}

std::vector<std::int32_t> random_labels(const LossShape& s) {
  std::mt19937 engine(21);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.batch));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(engine() % static_cast<unsigned>(reference::label_count(s)));
  return labels;
}

using Counters = std::vector<std::int64_t>;

struct Result {
  std::vector<float> gradient;
  Counters counters;
};

enum class Gradient { kApart, kInPlace, kNotWanted };

class LossTest : public testing::Test {
 protected:
  /// Adds to counters that start as `before`.
  Result run(const LossShape& shape, const std::vector<double>& logits,
             const std::vector<std::int32_t>& labels, Gradient gradient = Gradient::kApart,
             const Counters& before = Counters(kStepCounters), double limit = kLossLimit) {
    const auto x = rig_.upload(logits);
    const auto label_memory = rig_.upload(labels);
    const auto counters = rig_.upload(before);
    const auto apart = rig_.poisoned<float>(logits.size());
    const auto state = rig_.upload(std::vector<StepState>{state_});
    LossShape on_device = shape;
    std::vector<float> weights(1);
    if (shape.rule.class_weights != nullptr)
      weights.assign(shape.rule.class_weights, shape.rule.class_weights + shape.classes);
    const auto weight_memory = rig_.upload(weights);
    if (shape.rule.class_weights != nullptr) on_device.rule.class_weights = weight_memory.data();
    std::vector<std::uint8_t> sets(1);
    if (shape.rule.label_sets != nullptr)
      sets.assign(shape.rule.label_sets, shape.rule.label_sets + reference::kTriedLabelSets * shape.classes);
    const auto set_memory = rig_.upload(sets);
    if (shape.rule.label_sets != nullptr) on_device.rule.label_sets = set_memory.data();
    std::vector<MixedLabel> second(1);
    if (shape.mixed != nullptr) second.assign(shape.mixed, shape.mixed + shape.batch);
    const auto second_memory = rig_.upload(second);
    if (shape.mixed != nullptr) on_device.mixed = second_memory.data();
    const LossTarget target = {label_memory.data(), counters.data(), limit, state.data()};
    const std::array<float*, 3> dlogits = {apart.data(), x.data(), nullptr};
    rig_.ops().loss_and_gradient(rig_.stream(), on_device, x.data(), target,
                                 dlogits.at(static_cast<std::size_t>(gradient)));
    return {rig_.download(gradient == Gradient::kInPlace ? x : apart), rig_.download(counters)};
  }

  DeviceRig rig_;
  StepState state_;
};

double loss_of(const Counters& counters) {
  WideSum sum;
  std::copy_n(counters.begin() + kLoss, kWideLimbs, sum.limbs.begin());
  return sum.value() / kLossScale;
}

/// Every third sample has the set of labels that its outputs have, if there is such a set.
std::vector<std::int32_t> labels_for(const LossShape& s, const std::vector<double>& logits) {
  std::vector<std::int32_t> labels = random_labels(s);
  for (int n = 0; s.rule.label_sets != nullptr && n < s.batch; n += 3)
    for (std::int32_t row = 0; row < reference::kTriedLabelSets; ++row)
      if (reference::is_correct(s, logits, row, n)) labels[static_cast<std::size_t>(n)] = row;
  return labels;
}

/// The CPU's losses agree with naive loops: tests/kernels/loss_test.cpp.
TEST_F(LossTest, EveryLossHasTheBitsOfTheCpu) {
  for (const LossShape& s : all_shapes()) {
    reference::for_each_loss(s, [&](const std::string& name, const LossShape& shape) {
      state_.steps_done = 2;
      state_.loss_scales[2] = shape.rule.scale;
      for (const double scale : {0.5, 12.0, 150.0}) {
        SCOPED_TRACE(describe(shape) + ", " + name + ", logits up to " + std::to_string(scale));
        const auto logits = random_logits(shape, scale);
        const auto labels = labels_for(shape, logits);
        const Result result = run(shape, logits, labels);
        LossShape padded = shape;
        padded.batch = padded_columns(shape.batch);
        auto gradient = to_cpu(logits, shape.batch);
        LossSums sums;
        cpu::loss_and_gradient(padded, gradient.data(), labels.data(), gradient.data(), &sums);
        expect_bits_of_cpu(gradient, result.gradient, shape.batch, "gradient");
        EXPECT_EQ(loss_of(result.counters), sums.loss);
        EXPECT_EQ(result.counters[kSamples], shape.batch);
        EXPECT_EQ(result.counters[kCorrect], sums.correct);
        EXPECT_EQ(result.counters[kStopRequests], 0);
        EXPECT_EQ(result.counters[kRefused], 0);
      }
    });
  }
}

TEST_F(LossTest, GradientMayBeInPlaceOrMissing) {
  for (const LossShape& s : all_shapes()) {
    reference::for_each_loss(s, [&](const std::string& name, const LossShape& shape) {
      SCOPED_TRACE(describe(shape) + ", " + name);
      const auto logits = random_logits(shape, 4);
      const auto labels = labels_for(shape, logits);
      const Result apart = run(shape, logits, labels);
      const Result in_place = run(shape, logits, labels, Gradient::kInPlace);
      EXPECT_EQ(in_place.gradient, apart.gradient);
      EXPECT_EQ(in_place.counters, apart.counters);
      EXPECT_EQ(run(shape, logits, labels, Gradient::kNotWanted).counters, apart.counters);
    });
  }
}

TEST_F(LossTest, BitsAreTheSameInEveryOrderOfThreads) {
  for (const LossShape& shape : all_shapes()) {
    SCOPED_TRACE(describe(shape));
    const auto logits = random_logits(shape, 30);
    const auto labels = random_labels(shape);
    Counters counters;
    same_in_every_order([&] {
      const Result result = run(shape, logits, labels);
      EXPECT_TRUE(counters.empty() || counters == result.counters) << "counters change with thread order";
      counters = result.counters;
      return result.gradient;
    });
  }
}

TEST_F(LossTest, ColumnsWithoutSamplesAndNarrowerSumsAreRefused) {
  LossShape shape = loss_shape(4, 3);
  const auto logits = random_logits(shape, 1);
  const auto labels = random_labels(shape);
  const double least = narrow_loss_limit(kMostLossTerms);
  const auto run_to = [&](double limit) {
    run(shape, logits, labels, Gradient::kApart, Counters(kStepCounters), limit);
  };
  EXPECT_NO_THROW(run_to(least));
  EXPECT_THROW(run_to(least / 2), InternalError);
  shape.samples = 3;
  EXPECT_THROW(run_to(least), InternalError);
}

TEST_F(LossTest, CountersAccumulate) {
  const LossShape shape = loss_shape(100, 10);
  const auto logits = random_logits(shape, 4);
  const auto labels = random_labels(shape);
  const Counters before = {10, 7, 3, 1, -(std::int64_t{1} << 50), 5, -6, 8, 9, 11};
  const Counters once = run(shape, logits, labels).counters;
  const Counters after = run(shape, logits, labels, Gradient::kApart, before).counters;
  for (std::size_t i = 0; i < kStepCounters; ++i) EXPECT_EQ(after[i], before[i] + once[i]) << "counter " << i;
}

TEST_F(LossTest, StopRequestOfTheStateIsCountedOnce) {
  const LossShape shape = loss_shape(300, 10);
  const auto logits = random_logits(shape, 4);
  state_.stop_requested = 1;
  EXPECT_EQ(run(shape, logits, random_labels(shape)).counters[kStopRequests], 1);
}

TEST_F(LossTest, StateMayBeMissing) {
  const LossShape shape = loss_shape(3, 2);
  const auto logits = rig_.upload(random_logits(shape, 4));
  const auto labels = rig_.upload(random_labels(shape));
  const auto counters = rig_.zeroed<std::int64_t>(kStepCounters);
  rig_.ops().loss_and_gradient(rig_.stream(), shape, logits.data(),
                               {labels.data(), counters.data(), kLossLimit, nullptr}, nullptr);
  EXPECT_EQ(rig_.download(counters)[kSamples], 3);
  EXPECT_EQ(rig_.download(counters)[kStopRequests], 0);
}

/// Whichever lanes and turns have them.
TEST_F(LossTest, FirstOfEveryPairOfEqualMaximaCounts) {
  constexpr int kClasses = 37, kPairs = kClasses * (kClasses - 1) / 2;
  const LossShape shape = loss_shape(kPairs, kClasses);
  std::vector<double> logits(std::size_t{kPairs} * kClasses, -1);
  std::vector<std::int32_t> firsts, seconds;
  for (int i = 0; i < kClasses; ++i) {
    for (int j = i + 1; j < kClasses; ++j) {
      const int n = static_cast<int>(firsts.size());
      logits[logit_index(shape, i, n)] = logits[logit_index(shape, j, n)] = 3;
      firsts.push_back(i);
      seconds.push_back(j);
    }
  }
  EXPECT_EQ(run(shape, logits, firsts).counters[kCorrect], kPairs);
  EXPECT_EQ(run(shape, logits, seconds).counters[kCorrect], 0);
}

TEST_F(LossTest, HugeLogitsDoNotOverflow) {
  const LossShape shape = loss_shape(2, 3);
  std::vector<double> logits(6);
  logits[logit_index(shape, 0, 0)] = 3e38F;
  logits[logit_index(shape, 1, 1)] = -3e38F;
  const Result result = run(shape, logits, {0, 0});
  EXPECT_NEAR(loss_of(result.counters), std::log(2.0), 1e-6);
  EXPECT_EQ(result.counters[kCorrect], 2);
  EXPECT_EQ(result.counters[kRefused], 0);
  EXPECT_EQ(result.gradient[logit_index(shape, 1, 0)], 0.0F);
}

/// Sample 1 of 3 is broken; the loss of the others counts.
void expect_one_refused(const Result& result) {
  EXPECT_EQ(result.counters[kRefused], 1);
  EXPECT_EQ(result.counters[kSamples], 3);
  EXPECT_EQ(result.counters[kCorrect], 2);
  EXPECT_NEAR(loss_of(result.counters), 2 * std::log(1 + 3 * std::exp(-1.0)), 1e-6);
}

TEST_F(LossTest, BrokenLogitsAreCountedForTheirSampleOnly) {
  const LossShape shape = loss_shape(3, 4);
  for (const float broken : {kNan, kInfinity}) {
    for (int c = 0; c < 4; ++c) {
      SCOPED_TRACE(std::to_string(broken) + " in class " + std::to_string(c));
      std::vector<double> logits(12);
      logits[logit_index(shape, 0, 0)] = logits[logit_index(shape, 0, 2)] = 1;
      logits[logit_index(shape, c, 1)] = static_cast<double>(broken);
      const Result result = run(shape, logits, {0, c, 0});
      expect_one_refused(result);
      for (int k = 0; k < 4; ++k) {
        EXPECT_TRUE(std::isnan(result.gradient[logit_index(shape, k, 1)])) << k;
        EXPECT_TRUE(std::isfinite(result.gradient[logit_index(shape, k, 2)])) << k;
      }
    }
  }
}

/// Sample c has its broken logit in class c.
TEST_F(LossTest, ABrokenLogitOfAnyClassIsCounted) {
  constexpr int kClasses = 37;
  const LossShape shape = loss_shape(kClasses, kClasses);
  const std::vector<std::int32_t> labels(kClasses, 20);
  for (const float broken : {kNan, kInfinity}) {
    std::vector<double> logits = random_logits(shape, 4);
    for (int c = 0; c < kClasses; ++c) logits[logit_index(shape, c, c)] = static_cast<double>(broken);
    const Result result = run(shape, logits, labels);
    EXPECT_EQ(result.counters[kRefused], kClasses) << broken;
    EXPECT_EQ(result.counters[kCorrect], 0) << broken;
    for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_TRUE(std::isnan(result.gradient[i])) << i;
  }
}

TEST_F(LossTest, ImpossibleLabelIsCounted) {
  const LossShape shape = loss_shape(3, 4);
  std::vector<double> logits(12);
  logits[logit_index(shape, 0, 0)] = logits[logit_index(shape, 0, 2)] = 1;
  logits[logit_index(shape, 3, 1)] = -kInfinity;
  const Result result = run(shape, logits, {0, 3, 0});
  expect_one_refused(result);
  EXPECT_EQ(result.gradient[logit_index(shape, 3, 1)], -1.0F);
  for (int c = 0; c < 4; ++c) logits[logit_index(shape, c, 1)] = -kInfinity;
  expect_one_refused(run(shape, logits, {0, 0, 0}));
}

/// Wherever the border between one counter and several lies.
TEST_F(LossTest, SumIsExactOnBothSidesOfTheNarrowLimit) {
  const LossShape shape = loss_shape(2, 2);
  std::vector<double> logits(4);
  logits[logit_index(shape, 0, 0)] = 40;  // label 1: a loss of 40; the other sample: ln 2
  const Counters none(kStepCounters);
  const Counters narrow = run(shape, logits, {1, 0}, Gradient::kApart, none, 40.001).counters;
  const Counters wide = run(shape, logits, {1, 0}, Gradient::kApart, none, 40).counters;
  EXPECT_NEAR(loss_of(narrow), 40 + std::log(2.0), 1e-6);
  EXPECT_EQ(loss_of(wide), loss_of(narrow));
  EXPECT_EQ(narrow[kLoss + 1], 0);
  EXPECT_EQ(wide[kLoss + 1], 40);
  for (const Counters& counters : {narrow, wide}) EXPECT_EQ(counters[kRefused], 0);
}

/// Losses of every magnitude up to the largest float, against sums in double.
TEST_F(LossTest, SumsHoldEveryFiniteFloat) {
  for (const int exponent : {2, 15, 31, 32, 33, 60, 64, 96, 127}) {
    const LossShape shape = loss_shape(100, 2);
    std::vector<double> logits(200);
    double expected = 0;
    for (int n = 0; n < 100; ++n) {
      const float logit = std::ldexp(1.0F + static_cast<float>(n) / 101, exponent);
      logits[logit_index(shape, 0, n)] = double{logit};
      expected += std::log1p(std::exp(-double{logit})) + double{logit};
    }
    const std::vector<std::int32_t> labels(100, 1);
    Counters counters;
    same_in_every_order([&] {
      return counters = run(shape, logits, labels, Gradient::kApart, Counters(kStepCounters), 1).counters;
    });
    EXPECT_EQ(counters[kRefused], 0) << exponent;
    EXPECT_NEAR(loss_of(counters) / expected, 1, 1e-6) << exponent;
  }
}

}  // namespace
}  // namespace lockstep::test::loss_test
