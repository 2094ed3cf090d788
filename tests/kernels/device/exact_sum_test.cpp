// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums on a device, bit for bit those of the CPU.
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test::exact_sum_test {
namespace {

constexpr float kLimit = 65536.0F;
const std::size_t kSizes[] = {1,  2,  3,  7,   8,   9,   16,  17,  31,  32,   33,
                              63, 64, 65, 100, 255, 256, 257, 511, 512, 1000, 2049};

/// Numbers of every magnitude that may enter, from far below the resolution up to the limit.
std::vector<float> wide_range(std::size_t size, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(size);
  for (float& value : values) {
    const auto exponent = static_cast<int>(engine() % 66) - 50;
    const auto mantissa = static_cast<float>(static_cast<std::int32_t>(engine())) / 2147483648.0F;
    value = std::ldexp(mantissa, exponent);
  }
  return values;
}

class DeviceExactSumTest : public testing::Test {
 protected:
  /// The sums after `times` additions of g to `start`, and behind them the counts of refused terms. All,
  /// finite ones, others. Memory starts `offset` elements after an aligned address.
  std::vector<std::int64_t> accumulate(const std::vector<float>& g, std::int64_t start, int times,
                                       std::size_t offset = 0, ExactFormat format = {.limit = kLimit}) {
    std::vector<float> shifted(offset);
    shifted.insert(shifted.end(), g.begin(), g.end());
    const auto terms = rig_.upload(shifted);
    const auto sums = rig_.upload(std::vector<std::int64_t>(offset + g.size(), start));
    const auto refused = rig_.zeroed<std::int64_t>(1 + kRefusalKinds);
    for (int i = 0; i < times; ++i) {
      rig_.ops().accumulate_exact(rig_.stream(), g.size(), terms.data() + offset,
                                  {sums.data() + offset, format, {refused.data(), refused.data() + 1}});
    }
    std::vector<std::int64_t> result = rig_.download(sums);
    result.erase(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(offset));
    for (const std::int64_t count : rig_.download(refused)) result.push_back(count);
    return result;
  }

  DeviceRig rig_;
};

TEST_F(DeviceExactSumTest, HasTheBitsOfTheCpu) {
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE("size " + std::to_string(size));
    const std::vector<float> g = wide_range(size, 1);
    std::vector<std::int64_t> expected(size, -5);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(cpu::accumulate_exact(size, g.data(), {.limit = kLimit}, expected.data()));
    expected.insert(expected.end(), {0, 0, 0});
    EXPECT_EQ(same_in_every_order([&] { return accumulate(g, -5, 2); }), expected);
    EXPECT_EQ(accumulate(g, -5, 2, 1), expected) << "unaligned";
  }
}

TEST_F(DeviceExactSumTest, CountsAndLeavesOutWhatDoesNotFit) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> culprits = {kLimit, -kLimit, infinity, -infinity, std::nanf(""), 1e30F};
  for (const std::size_t size : {std::size_t{7}, std::size_t{40}, std::size_t{300}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    std::vector<float> g(size, 2.0F);
    std::vector<std::int64_t> expected(size, 5 + (std::int64_t{2} << 40));
    for (std::size_t i = 0; i < culprits.size(); ++i) {
      g[size - 1 - i] = culprits[i];
      expected[size - 1 - i] = 5;
    }
    expected.insert(expected.end(), {6, 3, 3});
    EXPECT_EQ(same_in_every_order([&] { return accumulate(g, 5, 1); }), expected);
  }
}

TEST_F(DeviceExactSumTest, EveryUnitHasTheBitsOfTheCpu) {
  for (int exponent = kLeastExactExponent; exponent <= 67; exponent += 27) {
    const ExactFormat format = exact_format(1, exponent);
    std::vector<float> g;
    for (int bit = -30; bit < 58; ++bit) g.push_back(std::ldexp(-1.2345678F, exponent + bit));
    for (const float halves : {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 4097.5F})
      g.push_back(std::ldexp(halves, exponent));
    std::vector<std::int64_t> expected(g.size(), 3);
    EXPECT_TRUE(cpu::accumulate_exact(g.size(), g.data(), format, expected.data()));
    expected.insert(expected.end(), {0, 0, 0});
    EXPECT_EQ(accumulate(g, 3, 1, 0, format), expected) << "units of 2^" << exponent;
  }
}

TEST_F(DeviceExactSumTest, ConvertsToFp32) {
  std::mt19937_64 engine(3);
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE("size " + std::to_string(size));
    std::vector<std::int64_t> sums(size);
    for (auto& sum : sums) sum = static_cast<std::int64_t>(engine()) >> (1 + engine() % 62);
    const auto from = rig_.upload(sums);
    std::vector<float> expected(size);
    cpu::mean_from_exact(size, sums.data(), kExactScale, 1, expected.data());
    EXPECT_EQ(same_in_every_order([&] {
                const auto g = rig_.poisoned<float>(size);
                rig_.ops().exact_to_fp32(rig_.stream(), size, from.data(), nullptr, g.data());
                return rig_.download(g);
              }),
              expected);
    std::vector<std::int16_t> exponents(size);
    for (auto& exponent : exponents) exponent = static_cast<std::int16_t>(engine() % 200 - 149);
    for (std::size_t i = 0; i < size; ++i)
      cpu::mean_from_exact(1, &sums[i], std::ldexp(1.0, -exponents[i]), 1, &expected[i]);
    const auto units = rig_.upload(exponents);
    const auto g = rig_.poisoned<float>(size);
    rig_.ops().exact_to_fp32(rig_.stream(), size, from.data(), units.data(), g.data());
    EXPECT_EQ(rig_.download(g), expected) << "each with a unit of its own";
  }
}

}  // namespace
}  // namespace lockstep::test::exact_sum_test
