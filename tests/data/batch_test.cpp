// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batches as the kernels see them.
#include "data/batch.hpp"

#include "common/error.hpp"
#include "kernels/cpu/cpu_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(BatchLoaderTest, ImagesAreNormalisedAndTransposedAndPaddingIsZero) {
  const TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 40, .test_samples = 1});
  const std::vector<std::int32_t> indices = {39, 0, 7};
  const auto ops = cpu::make_ops();
  AlignedBuffer<float> x(784 * 16);
  std::fill(x.span().begin(), x.span().end(), NAN);
  std::vector<std::int32_t> labels(3);
  BatchLoader(data.train).load(*ops, indices, 16, x.data(), labels.data());
  for (std::size_t n = 0; n < 16; ++n) {
    for (std::size_t f = 0; f < 784; ++f) {
      const float expected =
          n >= indices.size()
              ? 0.0F
              : std::fma(
                    static_cast<float>(data.train.images[static_cast<std::size_t>(indices[n]) * 784 + f]),
                    data.train.scales.scale[0], data.train.scales.shift[0]);
      ASSERT_EQ(x[f * 16 + n], expected) << "feature " << f << ", column " << n;
    }
  }
  for (std::size_t n = 0; n < 3; ++n)
    EXPECT_EQ(labels[n], data.train.labels[static_cast<std::size_t>(indices[n])]);
}

TEST(BatchLoaderTest, FeaturesAreTransposedUnchanged) {
  const TrainTestData data = load_dataset({.set = "random"});
  const std::vector<std::int32_t> indices = {999, 5};
  const auto ops = cpu::make_ops();
  AlignedBuffer<float> x(5 * 16);
  std::vector<std::int32_t> labels(2);
  BatchLoader(data.train).load(*ops, indices, 16, x.data(), labels.data());
  for (std::size_t f = 0; f < 5; ++f) {
    EXPECT_EQ(x[f * 16 + 0], data.train.features[999 * 5 + f]);
    EXPECT_EQ(x[f * 16 + 1], data.train.features[5 * 5 + f]);
    EXPECT_EQ(x[f * 16 + 2], 0.0F);
  }
  EXPECT_EQ(labels, (std::vector<std::int32_t>{data.train.labels[999], data.train.labels[5]}));
}

TEST(BatchLoaderTest, AnIndexOutsideTheSetOrTooManyOfThemIsABug) {
  const TrainTestData data = load_dataset({.set = "random", .train_samples = 20});
  const auto ops = cpu::make_ops();
  const BatchLoader loader(data.train);
  AlignedBuffer<float> x(5 * 16);
  std::vector<std::int32_t> labels(17);
  const auto load = [&](const std::vector<std::int32_t>& indices, int columns) {
    loader.load(*ops, indices, columns, x.data(), labels.data());
  };
  EXPECT_THROW(load({0, 20}, 16), InternalError);
  EXPECT_THROW(load({-1}, 16), InternalError);
  EXPECT_THROW(load(std::vector<std::int32_t>(17), 16), InternalError);
  EXPECT_THROW(load({0}, 15), InternalError);
}

}  // namespace
}  // namespace lockstep
