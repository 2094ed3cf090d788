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

double loss_of(const Counters& counters) {
  WideSum sum;
  std::copy_n(counters.begin() + kLoss, kWideLimbs, sum.limbs.begin());
  return sum.value() / kLossScale;
}

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
    LossShape there = shape;
    const auto weights = move_there(there.rule.class_weights, shape.classes);
    const auto sets = move_there(there.rule.label_sets, reference::kTriedLabelSets * shape.classes);
    const auto second = move_there(there.mixed, shape.batch);
    const LossTarget target = {label_memory.data(), counters.data(), limit, state.data()};
    const std::array<float*, 3> dlogits = {apart.data(), x.data(), nullptr};
    rig_.ops().loss_and_gradient(rig_.stream(), there, x.data(), target,
                                 dlogits.at(static_cast<std::size_t>(gradient)));
    return {rig_.download(gradient == Gradient::kInPlace ? x : apart), rig_.download(counters)};
  }

  /// Expects that all is what the CPU makes of it.
  Result expect_result_of_cpu(const LossShape& shape, const std::vector<double>& logits,
                              const std::vector<std::int32_t>& labels) {
    state_.steps_done = 2;
    state_.loss_scales[2] = shape.rule.scale;
    const Result result = run(shape, logits, labels);
    LossShape padded = shape;
    padded.batch = padded_columns(shape.batch);
    auto gradient = to_cpu(logits, shape.batch);
    LossSums sums;
    cpu::loss_and_gradient(padded, gradient.data(), labels.data(), gradient.data(), &sums);
    expect_bits_of_cpu(gradient, result.gradient, shape.batch, "gradient");
    EXPECT_DOUBLE_EQ(loss_of(result.counters), sums.loss);
    EXPECT_EQ(result.counters[kSamples], shape.batch);
    EXPECT_EQ(result.counters[kCorrect], sums.correct);
    EXPECT_EQ(result.counters[kStopRequests], 0);
    EXPECT_EQ(result.counters[kRefused], sums.not_finite);
    return result;
  }

  DeviceRig rig_;
  StepState state_;

 private:
  /// Copies numbers into the device's memory, if there are any.
  template <typename T>
  DeviceBuffer<T> move_there(const T*& numbers, int size) {
    const bool is_there = numbers != nullptr;
    auto memory = rig_.upload(is_there ? std::vector<T>(numbers, numbers + size) : std::vector<T>(1));
    if (is_there) numbers = memory.data();
    return memory;
  }
};

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
      for (const double scale : {0.5, 12.0, 150.0}) {
        SCOPED_TRACE(describe(shape) + ", " + name + ", logits up to " + std::to_string(scale));
        const auto logits = random_logits(shape, scale);
        const auto labels = labels_for(shape, logits);
        const Result expected = expect_result_of_cpu(shape, logits, labels);
        EXPECT_EQ(expected.counters[kRefused], 0);
        if (scale != 12) continue;
        const Result in_place = run(shape, logits, labels, Gradient::kInPlace);
        EXPECT_EQ(in_place.gradient, expected.gradient);
        EXPECT_EQ(in_place.counters, expected.counters);
        EXPECT_EQ(run(shape, logits, labels, Gradient::kNotWanted).counters, expected.counters);
        if (!shape.is_plain()) continue;
        same_in_every_order([&] {
          const Result result = run(shape, logits, labels);
          EXPECT_EQ(result.counters, expected.counters);
          return result.gradient;
        });
      }
    });
  }
}

/// Sample n has such logits in class n % classes, or in all: NaN and infinities count for it only.
TEST_F(LossTest, BrokenAndHugeLogitsAreThoseOfTheCpu) {
  constexpr double kOdd[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38};
  for (const int classes : {2, 4, 37}) {
    const int odd = static_cast<int>(std::size(kOdd)), batch = (2 * odd + 1) * classes;
    reference::for_each_loss(
        loss_shape(batch, classes), [&](const std::string& name, const LossShape& shape) {
          SCOPED_TRACE(describe(shape) + ", " + name);
          auto logits = random_logits(shape, 4);
          std::vector<std::int32_t> labels;
          for (int n = 0; n < batch; ++n) {
            labels.push_back((n % classes + n / classes % 2) % reference::label_count(shape));
            const int kind = n / classes / 2;
            if (kind < odd) logits[logit_index(shape, n % classes, n)] = kOdd[kind];
            for (int c = 0; kind == odd && c < classes; ++c) logits[logit_index(shape, c, n)] = -INFINITY;
          }
          const Result result = expect_result_of_cpu(shape, logits, labels);
          EXPECT_GE(result.counters[kRefused], 4 * classes);
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
