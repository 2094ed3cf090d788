// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples out of a data set: every pixel of every size arrives at its place, and padding columns are zero.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/numerics/augment_pixels.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

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
  return fmt::format("batch {}, samples {}, features {}", s.batch, s.samples, s.features);
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

std::vector<const std::uint8_t*> rows_of(const GatherShape& s, const std::vector<std::uint8_t>& images,
                                         const std::vector<std::int32_t>& index) {
  std::vector<const std::uint8_t*> rows;
  for (const std::int32_t i : index)
    rows.push_back(images.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(s.features));
  return rows;
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

/// Checks that each byte of its channel was scaled by one fused multiply-add.
void expect_normalised(const GatherShape& shape, const std::vector<float>& x,
                       const std::vector<std::uint8_t>& images, const std::vector<float>& scale,
                       const std::vector<float>& shift) {
  const std::size_t features = static_cast<std::size_t>(shape.features),
                    of_channel = features / static_cast<std::size_t>(shape.channels);
  expect_gathered(shape, x, [&](std::size_t at) {
    const std::size_t c = at % features / of_channel;
    return std::fma(static_cast<float>(images[at]), scale[c], shift[c]);
  });
}

TEST(GatherImagesTest, PixelsArriveAtTheirPlacesOnEverySimdTarget) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (const GatherShape& shape : kShapes) {
      const auto images = random_images(shape, 1);
      const auto scale = of_channels(shape, kScale, 0.001F), shift = of_channels(shape, kShift, -0.3F);
      std::vector<float> x(size_of(shape), NAN);
      cpu::gather_images(shape, rows_of(shape, images, random_index(shape, 2)).data(), scale.data(),
                         shift.data(), x.data());
      expect_normalised(shape, x, images, scale, shift);
    }
  }
}

/// Images of 3 channels of 16 x 17 pixels.
TEST(GatherImagesTest, AugmentedImagesAreNormalisedLikeOthersOnEverySimdTarget) {
  AugmentPlan plan = {
      .seed = 3, .channels = 3, .height = 16, .width = 17, .count = 4, .mixes_channels = 1, .steps = {}};
  plan.steps[0] = {AugmentKind::kFlip, {1 << 29}};
  plan.steps[1] = {AugmentKind::kRotate, {1 << 26}};
  plan.steps[2] = {AugmentKind::kJitter, {1 << 15, 1 << 17, 1 << 15, 1 << 17, 1 << 15, 1 << 17}};
  plan.steps[3] = {AugmentKind::kCutout, {5}};
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    SCOPED_TRACE(cpu::simd_name());
    for (const GatherShape& shape :
         {GatherShape{64, 37, 816, 3}, GatherShape{16, 16, 816, 3}, GatherShape{32, 1, 816, 3}}) {
      const auto images = random_images(shape, 1);
      const auto index = random_index(shape, 2);
      const auto scale = of_channels(shape, kScale, 0.001F), shift = of_channels(shape, kShift, -0.3F);
      std::vector<std::uint8_t> augmented(images.size());
      for (std::uint32_t row = 0; row < kRows; ++row)
        cpu::augment_image(plan, 5, row, images.data() + std::size_t{row} * 816,
                           augmented.data() + std::size_t{row} * 816);
      std::vector<float> x(size_of(shape), NAN);
      cpu::gather_augmented(shape, rows_of(shape, images, index).data(), index.data(), scale.data(),
                            shift.data(), plan, 5, {}, x.data());
      expect_normalised(shape, x, augmented, scale, shift);
    }
  }
}

/// A saturation of 0 leaves the grey that is as light, which is 35.03. It is
/// (19595 * 100 + 38470 * 7 + 7471 * 9) / 65536.
TEST(GatherImagesTest, SaturationIsThatOfAllChannelsOfAPixel) {
  const auto changed = [](int count) {
    std::vector<int> values = {100, 7, 9};
    augment::change_pixel({AugmentKind::kJitter, {augment::kFactorOne, augment::kFactorOne, 0, 0}}, 0, 0,
                          count, values.data());
    return values;
  };
  EXPECT_EQ(changed(3), (std::vector<int>{35, 35, 35}));
  EXPECT_EQ(changed(1), (std::vector<int>{100, 7, 9})) << "the others are no channels of it";
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

namespace lockstep::dropout_test {

// Dropout: the mask is the documented function of seed, step, layer, unit and global sample, and nothing
// else.

namespace {

using reference::random_tensor;

// batch, units, unit size, probability
const DropoutShape kShapes[] = {
    {16, 1, 1, 0.5F},   {64, 50, 1, 0.5F},  {64, 20, 64, 0.5F},  {32, 7, 3, 0.25F}, {112, 9, 5, 0.1F},
    {128, 5, 35, 0.9F}, {16, 4, 16, 0.75F}, {48, 13, 2, 0.333F}, {80, 6, 1, 0.01F}, {32, 5, 3, 0},
};
const DropoutKey kKey = {0x0123456789ABCDEFU, 77, 3, 0xFFFFFFF0U};  // sample numbers wrap around

std::string describe(const DropoutShape& s) {
  return fmt::format("batch {}, units {} of {}, probability {}", s.batch, s.units, s.unit_size,
                     s.probability);
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

TEST(DropoutTest, EqualsScalarPhiloxBitForBitOnEverySimdTargetAlsoInPlace) {
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    for (const DropoutShape& shape : kShapes) {
      SCOPED_TRACE(describe(shape) + ", target " + cpu::simd_name());
      auto x = random_tensor(size_of(shape), 1);
      const std::vector<float> expected = reference_dropout(shape, kKey, x);
      EXPECT_EQ(run(shape, kKey, x), expected);
      cpu::dropout(shape, kKey, x.data(), x.data());
      EXPECT_TRUE(std::ranges::equal(x.span(), expected));
    }
  }
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

}  // namespace

}  // namespace lockstep::dropout_test
