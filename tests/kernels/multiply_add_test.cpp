// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// a * b + c rounds once, with an instruction for it and without.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/numerics/portable_math.hpp"
#include "kernels/numerics/random.hpp"
#include "tests/kernels/reference/simd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::multiply_add_test {
namespace {

/// Zeros, subnormal numbers, neighbours of powers of two, the largest, infinity and NaN, of both signs.
std::vector<float> corners() {
  std::vector<float> numbers;
  for (const std::uint32_t bits :
       {0x00000000U, 0x00000001U, 0x00000003U, 0x007FFFFFU, 0x00800000U, 0x00800001U,
        0x1A000001U, 0x33800000U, 0x33800001U, 0x34000001U, 0x3F000001U, 0x3F7FFFFFU,
        0x3F800000U, 0x3F800001U, 0x3F800003U, 0x3FFFFFFFU, 0x4B000001U, 0x4B800001U,
        0x5F7FFFFFU, 0x7F000000U, 0x7F7FFFFFU, 0x7F800000U, 0x7FC00000U}) {
    numbers.push_back(std::bit_cast<float>(bits));
    numbers.push_back(std::bit_cast<float>(bits | 0x80000000U));
  }
  return numbers;
}

struct Case {
  float a, b, c;
};

/// Any bits; and sums whose exact value lies next to the middle of two floats, where rounding twice would show.
Case random_case(std::uint32_t number) {
  const Philox4 bits = philox(42, {{number, 0, 0, 0}});
  const float a = std::bit_cast<float>(bits.value[0]), b = std::bit_cast<float>(bits.value[1]);
  if (number % 2 == 0) return {a, b, std::bit_cast<float>(bits.value[2])};
  // (1 + i u)(1 - i u) = 1 - i^2 u^2 is next to 1, which beside 2^24 is half a unit: the middle of two floats.
  constexpr int kDistances[] = {24, -24, 23, -25, 25, 0};
  const auto few = [&](int word, float unit) {
    return 1.0F + static_cast<float>(bits.value[word] % 8) * unit;
  };
  const float sign = bits.value[2] % 2 == 0 ? 1.0F : -1.0F;
  return {few(0, 0x1p-23F), sign * few(bits.value[2] % 4 == 0 ? 1 : 0, -0x1p-23F),
          std::ldexp(few(3, 0x1p-23F), kDistances[bits.value[2] / 4 % 6])};
}

bool same(float x, float y) {
  return (std::isnan(x) && std::isnan(y)) ||
         std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

std::string show(const Case& c) {
  return ::testing::PrintToString(std::vector{c.a, c.b, c.c});
}

TEST(SoftwareFmaTest, RoundsOnceInEveryCorner) {
  const std::vector<float> numbers = corners();
  for (const float a : numbers) {
    for (const float b : numbers) {
      for (const float c : numbers)
        ASSERT_TRUE(same(software_fma(a, b, c), std::fma(a, b, c))) << show({a, b, c});
    }
  }
}

TEST(SoftwareFmaTest, RoundsOnceAtRandom) {
  int twice_differs = 0;
  for (std::uint32_t i = 0; i < 400'000; ++i) {
    const Case c = random_case(i);
    const float once = std::fma(c.a, c.b, c.c);
    ASSERT_TRUE(same(software_fma(c.a, c.b, c.c), once)) << show(c);
    const double product = static_cast<double>(c.a) * static_cast<double>(c.b);
    twice_differs += !same(static_cast<float>(product + static_cast<double>(c.c)), once);
  }
  EXPECT_GT(twice_differs, 1000) << "rounding twice is not what is tested";
}

/// y = (x - mean) * scale + shift is the kernels' plainest multiply-add.
std::vector<float> on_vectors(const std::vector<float>& x, float scale, float shift) {
  const BatchNormShape shape{static_cast<int>(x.size()), static_cast<int>(x.size()), 1, 1};
  BatchNormChannel channel;
  channel.rstd = scale;
  std::vector<float> y(x.size());
  cpu::batch_norm_forward(shape, x.data(), &channel, nullptr, &shift, y.data());
  return y;
}

void expect_one_rounding(const std::vector<float>& x, float scale, float shift) {
  const std::vector<float> y = on_vectors(x, scale, shift);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(y[i], std::fma(x[i] - 0.0F, scale, shift)))
        << show({x[i], scale, shift}) << " on " << cpu::simd_name();
  }
}

TEST(MultiplyAddTest, RoundsOnceOnEverySimdTarget) {
  std::vector<float> numbers = corners();
  numbers.resize((numbers.size() + 15) / 16 * 16, 1.5F);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    EXPECT_EQ(cpu::simd_fuses(), target != HWY_SCALAR && target != HWY_SSE4) << cpu::simd_name();
    for (const float scale : numbers)
      for (const float shift : numbers) expect_one_rounding(numbers, scale, shift);
    for (std::uint32_t i = 1; i < 20'000; i += 16) {
      std::vector<float> x;
      const Case first = random_case(i);
      for (std::uint32_t k = 0; k < 16; ++k) x.push_back(random_case(i + 2 * k).a);
      expect_one_rounding(x, first.b, first.c);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(SimdChoiceTest, NamesWhatThereIsAndRefusesTheRest) {
  const auto choices = cpu::simd_choices();
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices.size(), reference::all_targets().size());
  EXPECT_NO_THROW(cpu::choose_simd(""));
  EXPECT_THROW(cpu::choose_simd("avx9"), UsageError);
  for (const char* name : {"avx512", "avx2", "sse4", "neon"}) {
    if (std::ranges::find(choices, name) == choices.end()) {
      EXPECT_THROW(cpu::choose_simd(name), DeviceError) << name;
    }
  }
}

}  // namespace
}  // namespace lockstep::multiply_add_test
