// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples out of a data set: every pixel of every size arrives at its place, and padding columns are zero.
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <cmath>
#include <numeric>
#include <string>

namespace lockstep::gather_test {
namespace {

constexpr int kRows = 150;
constexpr float kScale = 1.0F / 255.0F / 0.3081F;
constexpr float kShift = -0.1307F / 0.3081F;

// batch, samples, features, channels
const GatherShape kShapes[] = {{64, 64, 784},  {16, 16, 16},   {16, 3, 35},       {32, 17, 1},
                               {112, 100, 63}, {64, 32, 100},  {16, 0, 20},       {48, 47, 3072},
                               {32, 32, 17},   {64, 1, 784},   {128, 128, 129},   {64, 60, 3072, 3},
                               {16, 9, 75, 3}, {32, 32, 6, 6}, {48, 20, 1200, 3}, {16, 16, 77, 7}};

std::string describe(const GatherShape& s) {
  return "batch " + std::to_string(s.batch) + ", samples " + std::to_string(s.samples) + ", features " +
         std::to_string(s.features);
}

std::vector<std::int32_t> random_index(const GatherShape& s, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> index(static_cast<std::size_t>(s.samples));
  for (std::int32_t& row : index) row = static_cast<std::int32_t>(generator() % kRows);
  return index;
}

/// A data set of exactly kRows samples, so that a read beyond it is found by AddressSanitizer.
std::vector<std::uint8_t> random_images(const GatherShape& s, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::uint8_t> images(static_cast<std::size_t>(kRows) * static_cast<std::size_t>(s.features));
  for (std::uint8_t& byte : images) byte = static_cast<std::uint8_t>(generator());
  return images;
}

std::size_t size_of(const GatherShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.features);
}

/// One number for each channel, all different.
std::vector<float> of_channels(const GatherShape& shape, float first, float more) {
  std::vector<float> numbers;
  for (int c = 0; c < shape.channels; ++c) numbers.push_back(first + more * static_cast<float>(c));
  return numbers;
}

std::vector<float> gather(const GatherShape& shape, const std::vector<float>& scale,
                          const std::vector<float>& shift) {
  std::vector<float> x(size_of(shape), NAN);
  cpu::gather_images(shape, random_images(shape, 1).data(), random_index(shape, 2).data(), scale.data(),
                     shift.data(), x.data());
  return x;
}

std::size_t channel_of(const GatherShape& shape, std::size_t at) {
  const auto features = static_cast<std::size_t>(shape.features);
  return at % features / (features / static_cast<std::size_t>(shape.channels));
}

/// Checks x[f][n] against value(row, f) in the columns of samples and against 0 in the others.
template <class Value>
void expect_gathered(const GatherShape& shape, const std::vector<float>& x, const Value& value) {
  const auto index = random_index(shape, 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t f = i / static_cast<std::size_t>(shape.batch);
    const std::size_t n = i % static_cast<std::size_t>(shape.batch);
    const auto row = n < index.size() ? static_cast<std::size_t>(index[n]) : 0;
    const float expected =
        n < index.size() ? value(row * static_cast<std::size_t>(shape.features) + f) : 0.0F;
    ASSERT_EQ(x[i], expected) << describe(shape) << ": feature " << f << " column " << n;
  }
}

TEST(GatherImagesTest, EveryPixelIsScaledByOneFusedMultiplyAdd) {
  for (const GatherShape& shape : kShapes) {
    const auto images = random_images(shape, 1);
    const auto scale = of_channels(shape, kScale, 0.001F), shift = of_channels(shape, kShift, -0.3F);
    expect_gathered(shape, gather(shape, scale, shift), [&](std::size_t at) {
      const std::size_t c = channel_of(shape, at);
      return std::fma(static_cast<float>(images[at]), scale[c], shift[c]);
    });
  }
}

TEST(GatherImagesTest, PixelsArriveAtTheirPlacesOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (const GatherShape& shape : kShapes) {
      const auto images = random_images(shape, 1);
      const auto scale = of_channels(shape, 2, 1), shift = of_channels(shape, -3, 5);
      expect_gathered(shape, gather(shape, scale, shift), [&](std::size_t at) {
        const std::size_t c = channel_of(shape, at);
        return scale[c] * static_cast<float>(images[at]) + shift[c];
      });
    }
  }
}

TEST(GatherFeaturesTest, NumbersArriveAtTheirPlaces) {
  for (const GatherShape& shape : kShapes) {
    const auto features = reference::random_tensor(kRows * static_cast<std::size_t>(shape.features), 3);
    std::vector<float> x(size_of(shape), NAN);
    cpu::gather_features(shape, features.data(), random_index(shape, 2).data(), x.data());
    expect_gathered(shape, x, [&](std::size_t at) { return features[at]; });
  }
}

}  // namespace
}  // namespace lockstep::gather_test
