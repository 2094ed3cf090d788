// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order of an epoch.
#include "data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>

namespace lockstep::permutation_test {
namespace {

using Order = std::vector<std::int32_t>;

/// FNV-1a over the little-endian bytes.
std::uint64_t hash(const Order& order) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const std::int32_t entry : order)
    for (int shift = 0; shift < 32; shift += 8)
      value = (value ^ (static_cast<std::uint32_t>(entry) >> shift & 0xFFU)) * 0x100000001B3U;
  return value;
}

TEST(PermutationTest, EverySampleIsThereOnce) {
  for (const std::int64_t samples : {0, 1, 2, 3, 5, 1000, 60000}) {
    Order order = epoch_permutation(samples, 7, 0), expected(static_cast<std::size_t>(samples));
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, expected) << samples;
  }
}

// The numbers are from an independent implementation (Python integers) of what the header says. They may
// never change: every published weights hash depends on them.
TEST(PermutationTest, TheOrderIsPinned) {
  EXPECT_EQ(epoch_permutation(10, 1234, 0), (Order{3, 8, 7, 9, 4, 5, 2, 6, 0, 1}));
  EXPECT_EQ(epoch_permutation(10, 1234, 1), (Order{8, 1, 0, 2, 6, 5, 3, 9, 4, 7}));
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 0)), 0x476EDB6CD1455FA1U);
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 1)), 0xD0B537C490FAE4E5U);
}

// The same implementation: of this epoch's draws two, 3140 and 36953, would make small numbers likelier and are drawn again.
TEST(PermutationTest, WordsThatWouldMakeSmallNumbersLikelierAreDrawnAgain) {
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 14)), 0xBA30BF70C928AF05U);
}

TEST(PermutationTest, AllBitsOfSeedAndEpochCount) {
  EXPECT_EQ(hash(epoch_permutation(60000, 0xFEDCBA9876543210U, (std::int64_t{5} << 24) + 7)),
            0x12EFBC82BF5BAE8DU);
  EXPECT_NE(epoch_permutation(100, 1, 7), epoch_permutation(100, 1, (1 << 24) + 7));
  EXPECT_NE(epoch_permutation(100, 1, 7), epoch_permutation(100, (std::uint64_t{1} << 32) + 1, 7));
}

TEST(PermutationTest, EpochsShareNoMorePlacesThanChance) {
  const Order first = epoch_permutation(60000, 1, 0), second = epoch_permutation(60000, 1, 1);
  int same = 0;
  for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == second[i] ? 1 : 0;
  EXPECT_LT(same, 10);  // one is expected
}

TEST(PermutationTest, AllOrdersOfFourAreEquallyLikely) {
  constexpr int kEpochs = 24000, kExpected = 1000;
  std::map<Order, int> seen;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++seen[epoch_permutation(4, 99, epoch)];
  ASSERT_EQ(seen.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : seen)
    chi_square += (count - kExpected) * (count - kExpected) / double{kExpected};
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: 0.1 % of fair shuffles are above
}

}  // namespace
}  // namespace lockstep::permutation_test
