// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Units follow gradients of any size, settle, and are asked at the same steps before and after a resume.
#include "comm/reduce/gradient_units.hpp"

#include "comm/reduce/gradient_reducer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace lockstep {

namespace {

using Sizes = std::vector<std::size_t>;

GradientUnits one_tensor(std::int64_t grains = 2) {
  return {Sizes{5}, grains};
}

/// Raises and refines as a step does whose largest term is `term` in each of two grains.
/// @returns how often the step had to be repeated
int settle(GradientUnits& units, float term, std::int64_t step = 0) {
  int repeats = 0;
  bool raised = false;
  for (;; ++repeats) {
    EXPECT_LT(repeats, 30) << term;
    if (repeats >= 30) return repeats;
    if (!(std::abs(term) < units.format(0).limit)) {
      units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, step);
      raised = true;
      continue;
    }
    const double sum = std::nearbyint(2 * double{term} * units.format(0).scale);
    if (raised || !units.refine(std::vector<double>{std::abs(sum)}, step)) return repeats;
  }
}

TEST(GradientUnitsTest, TensorsAreFoundByElement) {
  const GradientUnits units(Sizes{3, 1, 10}, 2);
  EXPECT_EQ(units.tensors(), 3U);
  EXPECT_EQ(units.parameters(), 14U);
  const std::size_t expected[] = {0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ(units.tensor_at(i), expected[i]) << i;
  EXPECT_EQ(units.begin(2), 4U);
  EXPECT_EQ(units.end(2), 14U);
}

TEST(GradientUnitsTest, GradientsOfUsualSizeChangeNothing) {
  for (const float term : {1e-4F, 1.0F, 1000.0F, 1e5F}) {
    GradientUnits units = one_tensor();
    EXPECT_EQ(settle(units, term), 0) << term;
    EXPECT_EQ(units.exponents()[0], kExactExponent);
    EXPECT_EQ(units.changed_at(), 0);
  }
}

TEST(GradientUnitsTest, EverySizeSettlesWithABitOfEveryDigit) {
  for (const std::int64_t grains : {1, 2, 64, 60000, 1 << 24}) {
    for (int bit = -149; bit < 128; ++bit) {
      GradientUnits units = one_tensor(grains);
      const float term = std::ldexp(1.0F, bit);
      EXPECT_LE(settle(units, term), 10) << "2^" << bit << ", " << grains << " grains";
      const ExactFormat format = units.format(0);
      EXPECT_LT(term, format.limit) << "2^" << bit << ", " << grains << " grains";
      const int bits = std::min(22, std::ilogb(double{format.limit} * format.scale) - 24);
      const bool all_digits =
          units.exponents()[0] == kLeastExactExponent || double{term} * format.scale >= std::ldexp(1.0, bits);
      EXPECT_TRUE(all_digits) << "2^" << bit << ", " << grains << " grains";
    }
  }
}

TEST(GradientUnitsTest, GradientsThatAreZeroEndAtTheFinestUnit) {
  GradientUnits units = one_tensor();
  EXPECT_EQ(settle(units, 0), 2);
  EXPECT_EQ(units.exponents()[0], kLeastExactExponent);
  EXPECT_EQ(settle(units, 0), 0) << "and stay";
  EXPECT_LE(settle(units, 1.0F), 10) << "and come back";
}

TEST(GradientUnitsTest, OnlyTensorsThatNeedItChange) {
  GradientUnits units(Sizes{5, 5, 5}, 2);
  units.raise(std::vector<TensorRefusals>{{}, {.too_large = 7}, {}}, 3);
  EXPECT_EQ(units.exponents()[0], -40);
  EXPECT_EQ(units.exponents()[1], -24);
  EXPECT_TRUE(units.refine(std::vector<double>{0x1p30, 0x1p30, 0x1p10}, 4));
  EXPECT_EQ(units.exponents()[0], -40);
  EXPECT_EQ(units.exponents()[1], -24);
  EXPECT_EQ(units.exponents()[2], -70);
  EXPECT_EQ(units.changed_at(), 4);
}

TEST(GradientUnitsTest, LargestUnitTakesEveryFloat) {
  GradientUnits units = one_tensor(1000);
  for (int i = 0; i < 20; ++i) units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, 0);
  EXPECT_EQ(units.format(0).limit, std::numeric_limits<float>::infinity());
  EXPECT_LT(double{std::numeric_limits<float>::max()} * units.format(0).scale * 1000 * kPartialSums, 0x1p62);
}

TEST(GradientUnitsTest, IsAskedSoonAfterAChangeAndSeldomLater) {
  GradientUnits units = one_tensor();
  const auto asked = [&](std::int64_t from) {
    std::set<std::int64_t> steps;
    for (std::int64_t step = from; step < from + 3000; ++step)
      if (units.is_refined_at(step)) steps.insert(step - from);
    return steps;
  };
  EXPECT_EQ(asked(0), (std::set<std::int64_t>{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}));
  units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, 5120);
  EXPECT_EQ(asked(5120), (std::set<std::int64_t>{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}));
  GradientUnits resumed = one_tensor();
  resumed.restore(units.exponents(), units.changed_at());
  for (std::int64_t step = 5120; step < 9000; ++step)
    ASSERT_EQ(resumed.is_refined_at(step), units.is_refined_at(step)) << step;
}

}  // namespace

// The trailing elements survive fp32 sums over any number of ranks.

namespace {

TEST(StepCountersTest, FloatElementsCarryLargeAndNegativeNumbers) {
  const StepCounters counters{{INT64_MAX, INT64_MIN, -1, 0, 123456789012345}};
  std::vector<float> elements(kCounterFloats);
  encode(counters, elements);
  EXPECT_EQ(decode(std::span<const float>(elements)).values, counters.values);
}

TEST(StepCountersTest, FloatSumsOverTheMostRanksAreExact) {
  const StepCounters one{{999, -(std::int64_t{1} << 48) - 4095, 4095, 1, 16777215}};
  std::vector<float> elements(kCounterFloats), sums(kCounterFloats);
  encode(one, elements);
  for (std::size_t rank = 0; rank < kMostRanksInFp32; ++rank) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += elements[i];
  }
  const StepCounters all = decode(std::span<const float>(sums));
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    EXPECT_EQ(all.values[i], one.values[i] * static_cast<std::int64_t>(kMostRanksInFp32));
  }
}

TEST(StepCountersTest, LossIsScaledBack) {
  StepCounters counters;
  counters.values[kLoss] = std::int64_t{5} << 31;
  EXPECT_EQ(counters.totals().loss(), 2.5);
  counters.values[kLoss + 3] = 1;
  EXPECT_EQ(counters.totals().loss(), 0x1p64);  // and 2.5, which is beyond double
}

}  // namespace

}  // namespace lockstep
