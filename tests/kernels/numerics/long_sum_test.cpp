// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Long sums against integers of 128 bits and exact values, in any order, from the least float's square to the
/// largest float.
#include "kernels/numerics/long_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

using Words = std::array<std::int64_t, kLongSumWords>;

Words long_sum_of(const std::vector<double>& terms) {
  Words words{};
  for (const double term : terms) add_to_long_sum(term, words.data());
  return words;
}

double value_of(const std::vector<double>& terms) {
  return long_sum_value(long_sum_of(terms).data());
}

TEST(LongSumTest, AgreesWithAnIntegerOf128Bits) {
  __extension__ using Integer = __int128;
  std::mt19937_64 engine(1);
  for (int place = -150; place <= 30; place += 9) {
    std::vector<double> terms;
    Integer expected = 0;
    for (int i = 0; i < 100; ++i) {
      const auto mantissa = static_cast<std::int64_t>(engine() >> 11) * (engine() % 3 == 0 ? -1 : 1);
      const int shift = static_cast<int>(engine() % 64);
      terms.push_back(std::ldexp(static_cast<double>(mantissa), place + shift));
      expected += static_cast<Integer>(mantissa) << shift;
    }
    EXPECT_EQ(value_of(terms), std::ldexp(static_cast<double>(expected), place)) << "2^" << place;
    for (double& term : terms) term = -term;
    EXPECT_EQ(value_of(terms), -std::ldexp(static_cast<double>(expected), place)) << "2^" << place;
  }
}

TEST(LongSumTest, OrderAndGroupingLeaveNoTrace) {
  std::mt19937_64 engine(2);
  std::vector<double> terms;
  for (int i = 0; i < 1000; ++i)
    terms.push_back(std::ldexp(static_cast<double>(engine() >> 11), static_cast<int>(engine() % 150) - 150) *
                    (i % 2 == 0 ? 1 : -1));
  const Words whole = long_sum_of(terms);
  std::ranges::shuffle(terms, engine);
  Words words = long_sum_of({terms.begin(), terms.begin() + 300});
  const Words rest = long_sum_of({terms.begin() + 300, terms.end()});
  for (std::size_t i = 0; i < words.size(); ++i) words[i] += rest[i];
  EXPECT_EQ(words, whole);
}

TEST(LongSumTest, IsRoundedOnceHalfToEven) {
  EXPECT_EQ(value_of({0x1p60, 0x1p7}), 0x1p60);                          // half a unit, down to even
  EXPECT_EQ(value_of({0x1p60, 0x1p7, 0x1p-100}), 0x1.0000000000001p60);  // a little more
  EXPECT_EQ(value_of({0x1p60, 0x1p8, 0x1p7}), 0x1.0000000000002p60);
  EXPECT_EQ(value_of({0x1p100, 1, -0x1p100}), 1);
  EXPECT_EQ(value_of({}), 0);
  EXPECT_EQ(value_of({1.5, -1.5}), 0);
}

TEST(LongSumTest, TakesEveryFloat) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(value_of({Limits::denorm_min()}), Limits::denorm_min());
  EXPECT_EQ(value_of({Limits::max(), -Limits::max(), -Limits::denorm_min()}), -Limits::denorm_min());
  EXPECT_EQ(value_of(std::vector<double>(1000, Limits::max())), 1000.0 * Limits::max());
  EXPECT_EQ(value_of({0x1p-200}), 0);           // below the unit
  EXPECT_EQ(value_of({0x1.8p-160}), 0x1p-160);  // cut off
}

TEST(LongSumTest, WhatDoesNotFitMakesItNaN) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad :
       {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 0x1p148, -0x1p1000}) {
    EXPECT_TRUE(std::isnan(value_of({1, bad}))) << bad;
    EXPECT_EQ(long_sum_of({bad, bad})[kLongSumLimbs], 2) << bad;
  }
  EXPECT_FALSE(std::isnan(value_of({0x1.fffffffffffffp147})));
  EXPECT_TRUE(std::isnan(value_of(std::vector<double>(20000, 0x1p147))));  // more than the limbs hold
}

}  // namespace
}  // namespace lockstep
