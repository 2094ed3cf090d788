// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The trailing elements survive fp32 sums over any number of ranks.
#include "comm/step_counters.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
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
