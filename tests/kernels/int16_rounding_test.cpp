// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Units and rounding of 16-bit integers. The largest number of a column, totals that no double holds, and
/// what rounds to zero.
#include "kernels/cpu/int16/operands.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/int16/rounding.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/int16_problem.hpp"
#include "tests/kernels/reference/simd.hpp"

namespace lockstep::int16_test {
namespace {

namespace int16 = cpu::int16;

TEST(Int16RoundingTest, TotalsThatNoDoubleHoldsAreRoundedOnce) {
  const std::int64_t half = std::int64_t{1} << 61;
  for (const std::int64_t unit :
       {std::int64_t{1} << 38, std::int64_t{1} << 37}) {  // the last bit of a float, and half
    for (const std::int64_t more : {-1, 0, 1}) {
      for (const std::int64_t sign : {-1, 1}) {
        const std::int64_t total = sign * (half + unit + more);
        EXPECT_EQ(int16::round_once(total, 0x1p-30), as_float(total, 0x1p-30L)) << total;
        EXPECT_EQ(int16::round_once(total, 0x1p-208), as_float(total, 0x1p-208L)) << total;  // subnormal
        const std::vector<std::int64_t> totals(20, total);
        Numbers results(totals.size());
        int16::round_totals(totals.size(), std::size_t{1} << 32, totals.data(), 0x1p-30, results.data());
        EXPECT_EQ(results, Numbers(totals.size(), as_float(total, 0x1p-30L))) << total;
      }
    }
  }
}

/// The power of two of which the largest is at most 32639; of zeros the least that there is.
TEST(Int16RoundingTest, AUnitHoldsTheLargestNumber) {
  for (const auto& [largest, unit] : {std::pair{0.0F, 0x1p-149},
                                      {0x1p-149F, 0x1p-149},
                                      {1.0F, 0x1p-14},
                                      {0x1.fdfcp0F, 0x1p-14},
                                      {0x1.fdfep0F, 0x1p-13}})
    EXPECT_EQ(int16::Unit::of(std::bit_cast<std::uint32_t>(largest)).value, unit) << largest;
}

/// [batch] of [features, batch].
std::vector<std::uint32_t> maxima_of(const Numbers& numbers, std::size_t batch) {
  std::vector<std::uint32_t> bits(batch);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    bits[i % batch] = std::max(bits[i % batch], std::bit_cast<std::uint32_t>(numbers[i]) & 0x7FFFFFFFU);
  return bits;
}

TEST(Int16RoundingTest, BatchNormFindsTheLargestOfEachColumn) {
  std::mt19937 random(51);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    for (const int kind : {0, 1, 3, 5, 6}) {
      const BatchNormShape shape{.batch = 48, .samples = 48, .channels = 3, .pixels = 5};
      const Numbers x = draw(random, 48 * 15, kind), dy = draw(random, x.size(), kind),
                    added = draw(random, x.size(), 0);
      const std::vector<BatchNormChannel> channels(3, {.mean = 0.25F, .rstd = 1.5F, .mean_dy = 0.125F});
      Numbers y(x.size()), plain(x.size());
      std::vector<std::uint8_t> positive(x.size() / 8);
      for (const cpu::NormSteps& steps :
           {cpu::NormSteps{}, cpu::NormSteps{added.data(), true, positive.data()}}) {
        std::vector<std::uint32_t> found(48, 0x7FFFFFFF);
        cpu::batch_norm_forward(shape, x.data(), channels.data(), nullptr, nullptr, steps, y.data(),
                                found.data());
        cpu::batch_norm_forward(shape, x.data(), channels.data(), nullptr, nullptr, steps, plain.data());
        EXPECT_EQ(first_difference("y", plain, y), "");
        EXPECT_EQ(found, maxima_of(y, 48)) << hwy::TargetName(target);
      }
      std::vector<std::uint32_t> found(48, 0x7FFFFFFF);
      cpu::batch_norm_backward(shape, x.data(), dy.data(), channels.data(), nullptr, y.data(), found.data());
      EXPECT_EQ(found, maxima_of(y, 48)) << hwy::TargetName(target);
    }
  }
}

TEST(Int16RoundingTest, BiasGradientsOfManyPixelsOverflowNothing) {
  constexpr int kPixels = 90'000, kBatch = 16;  // more than 31 bits hold of one column
  const Numbers dy(std::size_t{kPixels} * kBatch, int16::kLargest);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    float db = 0;
    int16::bias_gradient(1, kPixels, kBatch, kBatch, dy.data(), &db);
    EXPECT_EQ(db, static_cast<float>(std::int64_t{kPixels} * kBatch * 32639)) << hwy::TargetName(target);
  }
}

/// The unit of 1 is 2^-14. Half of it is rounded to 0, and what is a little more is not.
TEST(Int16RoundingTest, WhatRoundsToZeroIsCounted) {
  constexpr float kHalf = 0x1p-15F, kMore = 0x1.000002p-15F, kLeast = 0x1p-149F;
  Numbers dy(32);
  std::ranges::copy(std::array{1.0F, kHalf, 0.0F}, dy.begin());
  std::ranges::copy(std::array{-kMore, -kHalf, -kLeast}, dy.begin() + 16);
  dy[3] = dy[31] = 1000;  // in padding
  int16::count_rounding(2, 16, 3, dy.data());
  int16::begin_count();
  int16::count_rounding(2, 16, 3, dy.data());
  const int16::RoundingCount once = int16::take_count();
  EXPECT_EQ(once.nonzero, 5);
  EXPECT_EQ(once.to_zero, 3);
  int16::begin_count();
  const Numbers zeros(32), least(16, kLeast);
  int16::count_rounding(2, 16, 16, zeros.data());
  int16::count_rounding(1, 16, 2, least.data());  // a multiple of their unit
  int16::count_rounding(2, 16, 0, dy.data());
  int16::count_rounding(2, 16, 3, dy.data());
  const int16::RoundingCount sum = int16::take_count();
  EXPECT_EQ(sum.nonzero, 7);
  EXPECT_EQ(sum.to_zero, 3);
  EXPECT_EQ(int16::take_count().nonzero, 0);
}

}  // namespace
}  // namespace lockstep::int16_test
