// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums. Rounding half to even, any order gives the same bits, what does not fit is reported and left
/// out.
#include "kernels/numerics/sums.hpp"

#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::exact_sum_test {

namespace {

using reference::random_tensor;

constexpr float kLimit = 65536.0F;
const std::size_t kSizes[] = {0, 1, 5, 8, 9, 16, 37, 1000};

/// Numbers of every magnitude that may enter, from far below the resolution up to the limit.
std::vector<float> wide_range(std::size_t size, float limit, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> exponent(-50.0F, std::log2(limit));
  std::vector<float> values(size);
  for (float& value : values) {
    value = std::min(std::exp2(exponent(generator)), std::nextafter(limit, 0.0F)) *
            (generator() % 2 == 0 ? 1.0F : -1.0F);
  }
  return values;
}

std::int64_t fixed(float value) {
  return std::llrint(static_cast<double>(value) * kExactScale);
}

/// Added to a number that no double has.
std::vector<std::int64_t> accumulate(const std::vector<float>& g, float limit) {
  constexpr std::int64_t kBefore = (std::int64_t{1} << 60) + 1;
  std::vector<std::int64_t> sum(g.size(), kBefore);
  EXPECT_TRUE(cpu::accumulate_exact(g.size(), g.data(), {.limit = limit}, sum.data()));
  for (std::int64_t& number : sum) number -= kBefore;
  return sum;
}

TEST(AccumulateExactTest, RoundsToFixedPointOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (const float limit : {kLimit, exact_limit(1), 1.0F}) {
      for (const std::size_t size : kSizes) {
        const std::vector<float> g = wide_range(size, limit, 1);
        const std::vector<std::int64_t> sum = accumulate(g, limit);
        for (std::size_t i = 0; i < size; ++i)
          ASSERT_EQ(sum[i], fixed(g[i])) << g[i] << " at " << i << " of " << size;
      }
    }
  }
}

TEST(AccumulateExactTest, ReportsAndLeavesOutWhatDoesNotFit) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float culprit : {kLimit, -kLimit, infinity, -infinity, std::nanf(""), 1e30F}) {
    for (std::size_t at = 0; at < 37; ++at) {
      std::vector<float> g(37, 2.0F);
      g[at] = culprit;
      std::vector<std::int64_t> expected(37, fixed(2.0F) + 5);
      expected[at] = 5;
      std::vector<std::int64_t> sum(37, 5);
      EXPECT_FALSE(cpu::accumulate_exact(37, g.data(), {.limit = kLimit}, sum.data()))
          << culprit << " at " << at;
      EXPECT_EQ(sum, expected) << culprit << " at " << at;
    }
  }
}

TEST(AccumulateExactTest, TermsBelowTheLimitCannotOverflow) {
  for (const std::int64_t grains : {1, 2, 3, 64, 1000, 60000}) {
    for (int exponent = kLeastExactExponent; exponent < 90; ++exponent) {
      const ExactFormat format = exact_format(grains, exponent);
      const auto largest = static_cast<double>(std::nextafter(format.limit, 0.0F));
      EXPECT_LT(largest * format.scale * static_cast<double>(grains * kPartialSums), 0x1p62 * 1.0001)
          << grains << " grains, units of 2^" << exponent;
    }
  }
  EXPECT_EQ(exact_limit(64), 4096.0F);
  EXPECT_EQ(exact_limit(1, 70), std::numeric_limits<float>::infinity());
}

/// From the least float to the largest, each in units that hold it. Halves of a unit go to the even one.
TEST(AccumulateExactTest, EveryUnitTakesItsOwnMagnitudesOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (int exponent = kLeastExactExponent; exponent <= 67; exponent += 9) {
      const ExactFormat format = exact_format(1, exponent);
      std::vector<float> g;
      for (const float mantissa : {1.0F, -1.2345678F, 1.9999999F}) {
        for (int bit = 0; bit < 58; ++bit) g.push_back(std::ldexp(mantissa, exponent + bit));
      }
      for (const float halves : {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 0.49F, 0.51F, 4097.5F})
        g.push_back(std::ldexp(halves, exponent));
      std::erase_if(g, [](float value) { return !std::isfinite(value); });
      std::vector<std::int64_t> sum(g.size());
      EXPECT_TRUE(cpu::accumulate_exact(g.size(), g.data(), format, sum.data())) << exponent;
      std::vector<float> back(g.size());
      cpu::mean_from_exact(g.size(), sum.data(), format.scale, 1, back.data());
      for (std::size_t i = 0; i < g.size(); ++i) {
        const std::int64_t units = std::llrint(std::ldexp(double{g[i]}, -exponent));
        ASSERT_EQ(sum[i], units) << g[i] << " in units of 2^" << exponent;
        ASSERT_EQ(back[i], static_cast<float>(std::ldexp(static_cast<double>(units), exponent))) << g[i];
      }
    }
  }
}

TEST(MeanFromExactTest, DividesInDoubleOnEverySimdTarget) {
  std::mt19937_64 generator(4);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (const std::int64_t count : {1, 3, 7, 64, 100, 128, 7000}) {
      for (const std::size_t size : kSizes) {
        std::vector<std::int64_t> sum(size);
        for (auto& value : sum) value = static_cast<std::int64_t>(generator()) >> (1 + generator() % 62);
        std::vector<float> g(size);
        cpu::mean_from_exact(size, sum.data(), kExactScale, count, g.data());
        for (std::size_t i = 0; i < size; ++i) {
          ASSERT_EQ(g[i], static_cast<float>(from_exact(sum[i]) / static_cast<double>(count)))
              << sum[i] << " / " << count;
        }
      }
    }
  }
}

/// 33554175 lies between the floats 33554174 and 33554176. A product with 1 / 49, which is rounded, is below it.
TEST(MeanFromExactTest, AMeanBetweenTwoFloatsGoesToTheEvenOneOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    const std::vector<std::int64_t> sum(37, std::int64_t{49} * 33554175);
    std::vector<float> g(sum.size());
    cpu::mean_from_exact(sum.size(), sum.data(), 1, 49, g.data());
    EXPECT_EQ(g, std::vector<float>(37, 33554176.0F));
  }
}

TEST(FloatSumTest, MeanDivides) {
  for (const std::size_t size : kSizes) {
    const auto sum = random_tensor(size, 5);
    AlignedBuffer<float> mean(size);
    cpu::mean(size, sum.data(), 7, mean.data());
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(mean[i], sum[i] / 7.0F) << "size " << size << " index " << i;
  }
}

}  // namespace

}  // namespace lockstep::exact_sum_test

namespace lockstep {

// Long sums against 128-bit integers and exact values, in any order, from the least to the largest
// float.

namespace {

using Words = std::array<std::int64_t, kLongSumWords>;
__extension__ using Int128 = __int128;

Words long_sum_of(const std::vector<double>& terms) {
  Words words{};
  for (const double term : terms) add_to_long_sum(term, words.data());
  return words;
}

double value_of(const std::vector<double>& terms) {
  return long_sum_value(long_sum_of(terms).data());
}

TEST(LongSumTest, AgreesWithAnIntegerOf128Bits) {
  std::mt19937_64 engine(1);
  for (int place = -150; place <= 30; place += 9) {
    std::vector<double> terms;
    Int128 expected = 0;
    for (int i = 0; i < 100; ++i) {
      const auto mantissa = static_cast<std::int64_t>(engine() >> 11) * (engine() % 3 == 0 ? -1 : 1);
      const int shift = static_cast<int>(engine() % 64);
      terms.push_back(std::ldexp(static_cast<double>(mantissa), place + shift));
      expected += static_cast<Int128>(mantissa) << shift;
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

// Wide sums against plain integers, and against themselves in another order and grouping.

WideSum sum_of(const std::vector<double>& terms) {
  WideSum sum;
  for (const double term : terms) sum.add(term);
  return sum;
}

/// Terms of both signs and of every size up to 2^bits.
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
