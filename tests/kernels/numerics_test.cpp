// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Philox against the known answers that its authors distribute (Random123, kat_vectors, "philox4x32 10").
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/numerics/portable_math.hpp"
#include "kernels/numerics/random.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/sum_cuts.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

std::vector<std::uint32_t> words(const Philox4& block) {
  return {std::begin(block.value), std::end(block.value)};
}

/// Zeros, ones, and digits of pi.
TEST(PhiloxTest, GivesTheKnownAnswers) {
  using Words = std::vector<std::uint32_t>;
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(words(philox(0, {{0, 0, 0, 0}})), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(words(philox(~std::uint64_t{0}, {{kOnes, kOnes, kOnes, kOnes}})),
            (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(words(philox(0x299F31D0A4093822U, {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}})),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
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

TEST(PortableMathTest, LogarithmAgreesWithTheLibrary) {
  for (double x = 1e-10; x < 1e10; x *= 1.0137) {
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
}

TEST(PortableMathTest, QuantileInvertsTheNormalDistribution) {
  for (double p = 1.2e-10; p < 0.5; p *= 1.31) {
    const double low = 0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0));
    EXPECT_NEAR(low / p, 1, 1e-5) << p;
    EXPECT_NEAR(normal_quantile(1 - p), -normal_quantile(p), 1e-5) << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(PortableMathTest, ExponentialCosineAndPowersAreThoseOfTheLibrary) {
  for (double x = -20; x < 20; x += 0.0371) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-13) << x;
  EXPECT_EQ(portable_exp(0), 1);
  for (double x = 0; x <= 3.14159265358979; x += 0.00317)
    EXPECT_NEAR(portable_cos(x), std::cos(x), 1e-15) << x;
  EXPECT_EQ(portable_cos(0), 1);
  EXPECT_EQ(portable_cos(3.14159265358979323846), -1);
  for (const int n : {0, 1, 2, 3, 10, 1000})
    EXPECT_NEAR(integer_power(0.999, n) / std::pow(0.999, n), 1, 1e-13) << n;
  EXPECT_EQ(integer_power(0, 0), 1);
}

// The cuts of sums as docs/arithmetic.md promises them: to change one changes the weights of every run, and
// kArithmeticVersion.

TEST(SumCutsTest, AreThoseOfArithmeticVersionTwo) {
  EXPECT_EQ(kArithmeticVersion, 2);
  EXPECT_EQ(InputSlices::kBlock, 120);
  EXPECT_EQ(kOutputBlock, 128);
  EXPECT_EQ(kSampleBlock, 128);
  EXPECT_EQ(kLossSums, 4);
  EXPECT_EQ(kPartialSums, 16);
  EXPECT_EQ(kNormLanes, 256);
  EXPECT_EQ((std::vector{kGroupNormChains, kGroupNormLanes, kGroupNormPixelChains}),
            (std::vector{16, 16, 4}));
  std::vector<int> distances;
  for (int step = 0; step < 5; ++step) distances.push_back(lane_distance(step));
  EXPECT_EQ(distances, (std::vector{16, 1, 2, 8, 4}));
}

TEST(SumCutsTest, SlicesOfLinearLayers) {
  struct Case {
    int inputs, count, length;
  };
  for (const Case& c :
       {Case{1, 1, 1}, {10, 1, 10}, {11, 2, 6}, {35, 4, 9}, {320, 16, 20}, {38400, 16, 2400}}) {
    EXPECT_EQ(InputSlices(c.inputs).count, c.count) << c.inputs;
    EXPECT_EQ(InputSlices(c.inputs).length, c.length) << c.inputs;
  }
}

TEST(SumCutsTest, GroupsOfChannels) {
  struct Case {
    int channels, count, per_group;
  };
  for (const Case& c :
       {Case{1, 1, 1}, {3, 3, 1}, {4, 4, 1}, {6, 4, 2}, {9, 5, 2}, {10, 5, 2}, {20, 4, 5}, {50, 5, 10}}) {
    EXPECT_EQ(ChannelGroups(c.channels).count, c.count) << c.channels;
    EXPECT_EQ(ChannelGroups(c.channels).per_group, c.per_group) << c.channels;
  }
}

/// Net's and LeNet's, a grain of more groups of 32 samples than there are units, and edges.
TEST(SumCutsTest, UnitsAndTermsOfWeightGradients) {
  struct Case {
    int grain, height, width, pairs;
    std::vector<int> split;  ///< sample groups, sample units, rows, row units, units of a term, terms
  };
  for (const Case& c : {Case{64, 24, 24, 10, {1, 2, 1, 24, 4, 12}},
                        {64, 8, 8, 200, {1, 2, 2, 4, 4, 2}},
                        {64, 9, 9, 1000, {1, 2, 3, 3, 3, 2}},
                        {4200, 1, 2, 1, {2, 66, 1, 1, 5, 14}},
                        {256, 16, 16, 1, {1, 8, 1, 16, 8, 16}},
                        {1, 7, 7, 2500, {1, 1, 4, 2, 2, 1}},
                        {1, 7, 7, 4999, {1, 1, 4, 2, 2, 1}},
                        {1, 3, 15, 1, {1, 1, 2, 2, 2, 1}}}) {
    const GradientSplit s(c.grain, c.height, c.width, c.pairs);
    EXPECT_EQ((std::vector{s.sample_groups, s.sample_units, s.rows, s.row_units, s.units_of_term, s.terms}),
              c.split)
        << "grain " << c.grain << ", " << c.height << " x " << c.width << ", " << c.pairs << " pairs";
  }
}

}  // namespace

}  // namespace lockstep

namespace lockstep::multiply_add_test {

// a * b + c rounds once, with an instruction for it and without.

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
  // (1 + i u)(1 - i u) = 1 - i^2 u^2 is next to 1. Beside 2^24 that is half a unit: the middle of two floats.
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
  cpu::batch_norm_forward(shape, x.data(), &channel, nullptr, &shift, {}, y.data());
  return y;
}

void expect_one_rounding(const std::vector<float>& x, float scale, float shift) {
  const std::vector<float> y = on_vectors(x, scale, shift);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(y[i], std::fma(x[i] - 0.0F, scale, shift)))
        << show({x[i], scale, shift}) << " on " << cpu::simd_name();
  }
}

TEST(SimdChoiceTest, NamesThatAreNoneOrNotHereAreRefusedWithThoseThatAre) {
  const std::vector<std::string> choices = cpu::simd_choices();
  EXPECT_EQ(choices.size(), reference::all_targets().size());
  std::string listed;
  for (const std::string& choice : choices) listed += (listed.empty() ? "" : ", ") + choice;
  EXPECT_EQ(message_of<UsageError>([] { cpu::choose_simd("none"); }),
            "LOCKSTEP_SIMD=none is not an instruction set: choose one of " + listed);
  int refused = 0;
  for (const std::string name : {"avx512", "avx2", "sse4", "neon", "portable"}) {
    if (std::ranges::count(choices, name) > 0) continue;
    ++refused;
    EXPECT_EQ(message_of<DeviceError>([&] { cpu::choose_simd(name); }),
              "LOCKSTEP_SIMD=" + name + ": this processor does not have it, but " + listed);
  }
  EXPECT_GT(refused, 0) << "no processor has all";
  const std::string before = cpu::simd_name();
  EXPECT_NO_THROW(cpu::choose_simd(""));
  EXPECT_EQ(cpu::simd_name(), before);
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

}  // namespace

}  // namespace lockstep::multiply_add_test
