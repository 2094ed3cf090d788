// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Wide sums against plain integers, and against themselves in another order and grouping.
#include "kernels/numerics/wide_sum.hpp"

#include "common/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace lockstep {
namespace {

__extension__ using Int128 = __int128;

WideSum sum_of(const std::vector<double>& terms) {
  WideSum sum;
  for (const double term : terms) sum.add(term);
  return sum;
}

/// Of both signs and of every size up to 2^bits.
std::vector<double> random_terms(int count, int bits, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    const double mantissa = static_cast<double>(engine() >> 11) * (engine() % 2 == 0 ? 1 : -1);
    terms.push_back(std::ldexp(mantissa, static_cast<int>(engine() % static_cast<unsigned>(bits)) - 53));
  }
  return terms;
}

TEST(WideSumTest, AgreesWithAnIntegerOf128Bits) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto terms = random_terms(50, 120, seed);
    Int128 expected = 0;
    for (const double term : terms) expected += static_cast<Int128>(std::nearbyint(term));
    WideSum sum = sum_of(terms);
    EXPECT_EQ(sum.value(), static_cast<double>(expected)) << "seed " << seed;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(sum.limbs[i], static_cast<std::int64_t>(expected & 0xFFFFFFFF)) << "limb " << i;
      expected >>= 32;
    }
  }
}

TEST(WideSumTest, NeitherOrderNorGroupsMatter) {
  auto terms = random_terms(100, 189, 1);
  const WideSum expected = sum_of(terms);
  std::shuffle(terms.begin(), terms.end(), std::mt19937(2));
  EXPECT_EQ(sum_of(terms), expected);
  WideSum uncarried;  // as an all-reduce adds them
  for (const double term : terms) {
    const WideSum limbs = wide_term(term);
    for (std::size_t i = 0; i < limbs.limbs.size(); ++i) uncarried.limbs[i] += limbs.limbs[i];
  }
  EXPECT_EQ(uncarried.value(), expected.value());
  uncarried.carry();
  EXPECT_EQ(uncarried, expected);
}

TEST(WideSumTest, ValueIsRoundedOnceHalfToEven) {
  EXPECT_EQ(sum_of({0x1p53, 1}).value(), 0x1p53);
  EXPECT_EQ(sum_of({0x1p53, 3}).value(), 0x1p53 + 4);
  EXPECT_EQ(sum_of({0x1p100, 0x1p47}).value(), 0x1p100);
  EXPECT_EQ(sum_of({0x1p100, 0x1p47, 1}).value(), 0x1p100 + 0x1p48) << "what is cut off decides";
  EXPECT_EQ(sum_of({-0x1p100, -0x1p47, -1}).value(), -0x1p100 - 0x1p48);
  EXPECT_EQ(sum_of({0x1p180, -0x1p180, -5}).value(), -5);
  EXPECT_EQ(WideSum{}.value(), 0);
}

TEST(WideSumTest, HalvesGoToEven) {
  EXPECT_EQ(sum_of({0.5}).value(), 0);
  EXPECT_EQ(sum_of({1.5}).value(), 2);
  EXPECT_EQ(sum_of({-2.5}).value(), -2);
}

TEST(WideSumTest, LargestTermsOfALongRunHaveRoom) {
  WideSum sum = wide_term(std::ldexp(1.9999999, 188));
  for (std::int64_t& limb : sum.limbs) limb *= std::int64_t{1} << 30;
  EXPECT_EQ(sum.value(), std::ldexp(1.9999999, 218));
  EXPECT_THROW(wide_term(0x1p190), InternalError);
  EXPECT_THROW(wide_term(std::nan("")), InternalError);
}

}  // namespace
}  // namespace lockstep
