// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Dropout: the mask is the documented function of seed, step, layer, unit and global sample, and nothing
/// else.
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <cmath>
#include <string>

namespace lockstep::dropout_test {
namespace {

using reference::random_tensor;

// batch, units, unit size, probability
const DropoutShape kShapes[] = {
    {16, 1, 1, 0.5F},   {64, 50, 1, 0.5F},  {64, 20, 64, 0.5F},  {32, 7, 3, 0.25F}, {112, 9, 5, 0.1F},
    {128, 5, 35, 0.9F}, {16, 4, 16, 0.75F}, {48, 13, 2, 0.333F}, {80, 6, 1, 0.01F},
};
const DropoutKey kKey = {0x0123456789ABCDEFU, 77, 3, 0xFFFFFFF0U};  // sample numbers wrap around

std::string describe(const DropoutShape& s) {
  return "batch " + std::to_string(s.batch) + ", units " + std::to_string(s.units) + " of " +
         std::to_string(s.unit_size) + ", probability " + std::to_string(s.probability);
}

std::size_t size_of(const DropoutShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.units) *
         static_cast<std::size_t>(s.unit_size);
}

/// The rule of kernels/numerics/random.hpp, word for word.
bool is_dropped(const DropoutShape& shape, const DropoutKey& key, std::uint32_t unit, std::uint32_t column) {
  const Philox4 block = philox(key.seed, {{unit / 4, key.first_sample + column,
                                           random_stream(RandomUse::kDropout, key.layer), key.step}});
  return block.value[unit % 4] < dropout_threshold(shape.probability);
}

std::vector<float> reference_dropout(const DropoutShape& s, const DropoutKey& key,
                                     const AlignedBuffer<float>& x) {
  std::vector<float> y(x.size());
  const std::size_t batch = static_cast<std::size_t>(s.batch);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto unit = static_cast<std::uint32_t>(i / batch / static_cast<std::size_t>(s.unit_size));
    const bool dropped = is_dropped(s, key, unit, static_cast<std::uint32_t>(i % batch));
    y[i] = dropped ? 0.0F : x[i] * (1.0F / (1.0F - s.probability));
  }
  return y;
}

std::vector<float> run(const DropoutShape& shape, const DropoutKey& key, const AlignedBuffer<float>& x) {
  std::vector<float> y(x.size());
  cpu::dropout(shape, key, x.data(), y.data());
  return y;
}

TEST(DropoutTest, EqualsScalarPhiloxBitForBitOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    for (const DropoutShape& shape : kShapes) {
      SCOPED_TRACE(describe(shape) + ", target " + cpu::simd_name());
      const auto x = random_tensor(size_of(shape), 1);
      EXPECT_EQ(run(shape, kKey, x), reference_dropout(shape, kKey, x));
    }
  }
}

TEST(DropoutTest, WorksInPlace) {
  for (const DropoutShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto x = random_tensor(size_of(shape), 2);
    const std::vector<float> expected = run(shape, kKey, x);
    cpu::dropout(shape, kKey, x.data(), x.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), x.data()));
  }
}

TEST(DropoutTest, ProbabilityZeroChangesNothing) {
  const DropoutShape shape = {32, 5, 3, 0.0F};
  const auto x = random_tensor(size_of(shape), 3);
  const std::vector<float> y = run(shape, kKey, x);
  EXPECT_TRUE(std::equal(y.begin(), y.end(), x.data()));
}

TEST(DropoutTest, DroppedUnitsAreZeroEvenForNanAndInfinity) {
  const DropoutShape shape = {64, 8, 2, 0.5F};
  AlignedBuffer<float> x(size_of(shape));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? std::nanf("") : -INFINITY;
  int zeros = 0;
  for (const float value : run(shape, kKey, x)) {
    if (std::isfinite(value)) {
      EXPECT_EQ(value, 0.0F);
      EXPECT_FALSE(std::signbit(value));
      ++zeros;
    }
  }
  EXPECT_GT(zeros, 300);
}

TEST(DropoutTest, MaskOfASampleDoesNotDependOnWhichGrainItIsIn) {
  const DropoutShape whole = {64, 10, 4, 0.5F};
  const DropoutShape part = {16, 10, 4, 0.5F};
  AlignedBuffer<float> ones(size_of(whole));
  for (float& value : ones.span()) value = 1;
  const std::vector<float> all = run(whole, {9, 1, 2, 100}, ones);
  const std::vector<float> tail = run(part, {9, 1, 2, 148}, ones);  // the last 16 columns on their own
  for (std::size_t row = 0; row < 40; ++row) {
    for (std::size_t n = 0; n < 16; ++n)
      ASSERT_EQ(tail[row * 16 + n], all[row * 64 + 48 + n]) << "row " << row;
  }
}

TEST(DropoutTest, EachPartOfTheKeyGivesAnotherMask) {
  const DropoutShape shape = {64, 40, 1, 0.5F};
  AlignedBuffer<float> ones(size_of(shape));
  for (float& value : ones.span()) value = 1;
  const DropoutKey base = {1, 2, 3, 4};
  const DropoutKey others[] = {
      {2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 68}, {1ULL << 40, 2, 3, 4}};
  const std::vector<float> mask = run(shape, base, ones);
  for (const DropoutKey& key : others) {
    const std::vector<float> other = run(shape, key, ones);
    int same = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) same += mask[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(same, 1280, 130) << "independent masks agree in half of 2,560 units, five sigma are 126";
  }
}

TEST(DropoutTest, DropsTheGivenShareAndKeepsTheMean) {
  for (const float probability : {0.1F, 0.25F, 0.5F, 0.9F}) {
    const DropoutShape shape = {128, 1000, 1, probability};
    AlignedBuffer<float> ones(size_of(shape));
    for (float& value : ones.span()) value = 1;
    double sum = 0;
    int dropped = 0;
    for (const float value : run(shape, {5, 6, 7, 8}, ones)) {
      sum += value;
      dropped += value == 0 ? 1 : 0;
    }
    const double units = 128000;
    const double sigma = std::sqrt(units * probability * (1 - probability));
    EXPECT_NEAR(dropped, units * probability, 5 * sigma) << "probability " << probability;
    EXPECT_NEAR(sum, units, 5 * sigma / (1 - probability)) << "probability " << probability;
  }
}

}  // namespace
}  // namespace lockstep::dropout_test
