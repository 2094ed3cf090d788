// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Philox against the known answers that its authors distribute (Random123, kat_vectors, "philox4x32 10").
#include "kernels/numerics/random.hpp"

#include "gtest/gtest.h"

#include <cmath>
#include <set>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::uint32_t> words(const Philox4& block) {
  return {std::begin(block.value), std::end(block.value)};
}

TEST(PhiloxTest, ZeroCounterAndKeyGiveKnownAnswer) {
  EXPECT_EQ(words(philox(0, {{0, 0, 0, 0}})),
            (std::vector<std::uint32_t>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
}

TEST(PhiloxTest, AllOnesGiveKnownAnswer) {
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(words(philox(~std::uint64_t{0}, {{kOnes, kOnes, kOnes, kOnes}})),
            (std::vector<std::uint32_t>{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
}

TEST(PhiloxTest, DigitsOfPiGiveKnownAnswer) {
  EXPECT_EQ(words(philox(0x299F31D0A4093822U, {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}})),
            (std::vector<std::uint32_t>{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(PhiloxTest, EveryCounterWordAndKeyBitMatters) {
  std::set<std::vector<std::uint32_t>> blocks = {words(philox(0, {{0, 0, 0, 0}}))};
  for (unsigned word = 0; word < 4; ++word) {
    Philox4 counter = {{0, 0, 0, 0}};
    counter.value[word] = 1;
    blocks.insert(words(philox(0, counter)));
  }
  for (unsigned bit = 0; bit < 64; ++bit)
    blocks.insert(words(philox(std::uint64_t{1} << bit, {{0, 0, 0, 0}})));
  EXPECT_EQ(blocks.size(), 1U + 4U + 64U);
}

TEST(PhiloxTest, WordsAreUniform) {
  // Chi-square over 16 bins of 65,536 draws: mean 15, standard deviation 5.5.
  std::vector<int> bins(16);
  for (std::uint32_t i = 0; i < 16384; ++i) {
    for (const std::uint32_t word : philox(42, {{i, 0, 0, 0}}).value) ++bins[word >> 28];
  }
  double chi_square = 0;
  for (const int count : bins) chi_square += (count - 4096.0) * (count - 4096.0) / 4096.0;
  EXPECT_LT(chi_square, 45.0);
  EXPECT_GT(chi_square, 2.0);
}

TEST(RandomTest, StreamsOfDifferentUsesNeverMeet) {
  EXPECT_EQ(random_stream(RandomUse::kDropout, 5), 0x03000005U);
  EXPECT_NE(random_stream(RandomUse::kShuffle, 0xFFFFFF), random_stream(RandomUse::kInitialise, 0xFFFFFF));
}

TEST(RandomTest, Uniform01IsAtLeastZeroAndBelowOne) {
  EXPECT_EQ(uniform01(0), 0.0F);
  EXPECT_LT(uniform01(0xFFFFFFFF), 1.0F);
  EXPECT_EQ(uniform01(0x80000000), 0.5F);
}

TEST(RandomTest, DropoutThresholdIsTheProbabilityIn32Bits) {
  EXPECT_EQ(dropout_threshold(0.0F), 0U);
  EXPECT_EQ(dropout_threshold(0.5F), 0x80000000U);
  EXPECT_EQ(dropout_threshold(std::nextafter(1.0F, 0.0F)), 0xFFFFFF00U);
}

}  // namespace
}  // namespace lockstep
