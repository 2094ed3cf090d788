// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Augmented images against their definition in double precision, and the ways to compute them against each other.
#include "data/augmentation.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/augment_draws.hpp"
#include "kernels/numerics/augment_pixels.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::augmentation_test {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789ABCDEFU;
constexpr double kPi = 3.14159265358979323846;
using List = std::vector<Augmentation>;
using Image = std::vector<std::uint8_t>;

Augmentation::Range same(double number) {
  return {number, number};
}

const Augmentation kCrop = {AugmentKind::kCrop, {same(4)}};
const Augmentation kResizedCrop = {AugmentKind::kResizedCrop, {{{0.08, 1}, {0.75, 4.0 / 3}}}};
const Augmentation kFlip = {AugmentKind::kFlip, {same(0.5), same(0.25)}};
const Augmentation kRotate = {AugmentKind::kRotate, {same(30)}};
const Augmentation kShift = {AugmentKind::kShift, {same(0.2), same(0.1)}};
const Augmentation kScale = {AugmentKind::kScale, {{{0.5, 2}}}};
const Augmentation kErase = {AugmentKind::kErase, {{{0.5, 0.5}, {0.02, 0.33}, {0.3, 3.3}}}};
const Augmentation kCutout = {AugmentKind::kCutout, {same(5)}};
const Augmentation kBrighter = {AugmentKind::kJitter, {same(0.4), same(0), same(0)}};
const Augmentation kStretched = {AugmentKind::kJitter, {same(0), same(0.4), same(0)}};
const Augmentation kColourful = {AugmentKind::kJitter, {same(0), same(0), same(0.8)}};
const Augmentation kJitter = {AugmentKind::kJitter, {same(0.2), same(0.2), same(0.2)}};

const ImageShape kShapes[] = {{3, 32, 32}, {3, 17, 23}, {1, 28, 28}, {1, 40, 9}, {4, 8, 8}};
constexpr int kSamples = test::effort(200, 20);  ///< per list and shape

/// Noise, whose steps from pixel to pixel show every place that is a little off.
Image noise(const ImageShape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  Image image(static_cast<std::size_t>(shape.features()));
  for (auto& byte : image) byte = static_cast<std::uint8_t>(generator());
  return image;
}

Dataset set_of(const ImageShape& shape) {
  return {.shape = shape,
          .classes = 2,
          .labels = {0},
          .images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(shape.features()))};
}

AugmentPlan plan_of(const List& list, const ImageShape& shape) {
  return *make_augment_plan(list, set_of(shape), kSeed);
}

Image augmented(const AugmentPlan& plan, std::int64_t epoch, std::uint32_t sample, const Image& image) {
  Image to(image.size());
  cpu::augment_image(plan, epoch, sample, image.data(), to.data());
  return to;
}

// The definition in double precision, from the random words on.

double uniform(const augment::Draws& draws, int word, const Augmentation::Range& range) {
  return range[0] + (range[1] - range[0]) * std::ldexp(static_cast<double>(draws[word]), -32);
}
int whole(const augment::Draws& draws, int word, int low, int high) {
  return low +
         static_cast<int>(std::floor(std::ldexp(static_cast<double>(draws[word]), -32) * (high - low + 1)));
}
double log_uniform(const augment::Draws& draws, int word, const Augmentation::Range& range) {
  return std::exp(uniform(draws, word, {std::log(range[0]), std::log(range[1])}));
}

/// x' = xx x + xy y + x0 about the middle of the image.
struct Affine {
  double xx = 1, xy = 0, yx = 0, yy = 1, x0 = 0, y0 = 0;
};

Affine compose(const Affine& a, const Affine& b) {
  return {a.xx * b.xx + a.xy * b.yx, a.xx * b.xy + a.xy * b.yy,        a.yx * b.xx + a.yy * b.yx,
          a.yx * b.xy + a.yy * b.yy, a.x0 + a.xx * b.x0 + a.xy * b.y0, a.y0 + a.yx * b.x0 + a.yy * b.y0};
}

/// Sides in pixels.
std::pair<double, double> box(const ImageShape& shape, double area, double ratio) {
  const double pixels = area * shape.width * shape.height;
  return {std::min<double>(std::sqrt(pixels * ratio), shape.width),
          std::min<double>(std::sqrt(pixels / ratio), shape.height)};
}

Affine affine_of(const Augmentation& entry, const ImageShape& shape, const augment::Draws& draws) {
  const auto& v = entry.values;
  switch (entry.kind) {
    case AugmentKind::kCrop: {
      const int most = static_cast<int>(v[0][0]);
      return {.x0 = static_cast<double>(whole(draws, 0, -most, most)),
              .y0 = static_cast<double>(whole(draws, 1, -most, most))};
    }
    case AugmentKind::kShift: {
      const int x = static_cast<int>(std::lround(v[0][0] * shape.width));
      const int y = static_cast<int>(std::lround(v[1][0] * shape.height));
      return {.x0 = static_cast<double>(whole(draws, 0, -x, x)),
              .y0 = static_cast<double>(whole(draws, 1, -y, y))};
    }
    case AugmentKind::kFlip:
      return {.xx = std::ldexp(draws[0], -32) < v[0][0] ? -1.0 : 1.0,
              .yy = std::ldexp(draws[1], -32) < v[1][0] ? -1.0 : 1.0};
    case AugmentKind::kRotate: {
      const double angle = uniform(draws, 0, {-v[0][0], v[0][0]}) / 180 * kPi;
      return {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
    }
    case AugmentKind::kScale: {
      const double factor = uniform(draws, 0, v[0]);
      return {.xx = 1 / factor, .yy = 1 / factor};
    }
    case AugmentKind::kResizedCrop: {
      const auto [width, height] = box(shape, uniform(draws, 0, v[0]), log_uniform(draws, 1, v[1]));
      const double beside = (shape.width - width) / 2, above = (shape.height - height) / 2;
      return {.xx = width / shape.width,
              .yy = height / shape.height,
              .x0 = uniform(draws, 2, {-beside, beside}),
              .y0 = uniform(draws, 3, {-above, above})};
    }
    default:
      return {};
  }
}

double pixel(const ImageShape& shape, const std::uint8_t* channel, double x, double y) {
  const double left = std::floor(x), top = std::floor(y);
  double sum = 0;
  for (const int below : {0, 1}) {
    for (const int beside : {0, 1}) {
      const double column = left + beside, row = top + below;
      if (column < 0 || column >= shape.width || row < 0 || row >= shape.height) continue;
      const double weight =
          (beside == 1 ? x - left : 1 - (x - left)) * (below == 1 ? y - top : 1 - (y - top));
      sum += weight * channel[static_cast<std::size_t>(row * shape.width + column)];
    }
  }
  return sum;
}

/// [channel][row][column], still between whole numbers.
std::vector<double> moved(const Affine& map, const ImageShape& shape, const Image& image) {
  std::vector<double> result;
  const double x_middle = (shape.width - 1) / 2.0, y_middle = (shape.height - 1) / 2.0;
  for (int c = 0; c < shape.channels; ++c) {
    for (int row = 0; row < shape.height; ++row) {
      for (int column = 0; column < shape.width; ++column) {
        const double x = column - x_middle, y = row - y_middle;
        result.push_back(pixel(shape, image.data() + std::ptrdiff_t{c} * shape.height * shape.width,
                               x_middle + map.xx * x + map.xy * y + map.x0,
                               y_middle + map.yx * x + map.yy * y + map.y0));
      }
    }
  }
  return result;
}

double clamped(double value) {
  return std::clamp(value, 0.0, 255.0);
}

void jitter(const Augmentation& entry, const ImageShape& shape, const augment::Draws& draws,
            std::vector<double>& image) {
  const auto factor = [&](int i) {
    return uniform(draws, i, {std::max(0.0, 1 - entry.values[i][0]), 1 + entry.values[i][0]});
  };
  const auto plane = image.size() / static_cast<std::size_t>(shape.channels);
  for (double& value : image) value = clamped(128 + (clamped(value * factor(0)) - 128) * factor(1));
  if (entry.values[2][0] == 0) return;
  for (std::size_t i = 0; i < plane; ++i) {
    const double grey = 0.299 * image[i] + 0.587 * image[plane + i] + 0.114 * image[2 * plane + i];
    for (int c = 0; c < 3; ++c) {
      double& value = image[static_cast<std::size_t>(c) * plane + i];
      value = clamped(grey + (value - grey) * factor(2));
    }
  }
}

void erase(const Augmentation& entry, const ImageShape& shape, const augment::Draws& draws,
           std::vector<double>& image) {
  int left = 0, top = 0, width = 0, height = 0;
  if (entry.kind == AugmentKind::kCutout) {
    width = height = static_cast<int>(entry.values[0][0]);
    left = whole(draws, 0, 0, shape.width - 1) - width / 2;
    top = whole(draws, 1, 0, shape.height - 1) - height / 2;
  } else if (std::ldexp(draws[0], -32) < entry.values[0][0]) {
    const auto sides = box(shape, uniform(draws, 1, entry.values[1]), log_uniform(draws, 2, entry.values[2]));
    width = static_cast<int>(std::lround(sides.first));
    height = static_cast<int>(std::lround(sides.second));
    left = whole(draws, 3, 0, shape.width - width);
    top = whole(draws, 4, 0, shape.height - height);
  }
  for (std::size_t i = 0; i < image.size(); ++i) {
    const int x = static_cast<int>(i) % shape.width, y = static_cast<int>(i) / shape.width % shape.height;
    if (x >= left && x < left + width && y >= top && y < top + height) image[i] = 0;
  }
}

std::vector<double> model(const List& list, const ImageShape& shape, std::int64_t epoch, std::uint32_t sample,
                          const Image& image) {
  Affine map;
  std::vector<std::pair<Augmentation, augment::Draws>> later;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto draws = augment::draws_of(kSeed, epoch, sample, static_cast<int>(i));
    if (moves_pixels(list[i].kind))
      map = compose(map, affine_of(list[i], shape, draws));
    else
      later.emplace_back(list[i], draws);
  }
  std::vector<double> result = moved(map, shape, image);
  for (const auto& [entry, draws] : later)
    entry.kind == AugmentKind::kJitter ? jitter(entry, shape, draws, result)
                                       : erase(entry, shape, draws, result);
  return result;
}

bool fits(const List& list, const ImageShape& shape) {
  return shape.channels == 3 || std::ranges::none_of(list, [](const Augmentation& entry) {
           return entry.kind == AugmentKind::kJitter && entry.values[2][0] > 0;
         });
}

/// @returns the images that were compared
int expect_model(const List& list, double tolerance) {
  int images = 0;
  for (const ImageShape& shape : kShapes) {
    if (!fits(list, shape)) continue;
    const AugmentPlan plan = plan_of(list, shape);
    for (int sample = 0; sample < kSamples; ++sample, ++images) {
      const Image image = noise(shape, static_cast<unsigned>(sample));
      const std::int64_t epoch = sample % 3 == 0 ? (std::int64_t{1} << 24) + sample : sample % 5;
      const auto number = static_cast<std::uint32_t>(sample) * 1'000'003U;
      const Image got = augmented(plan, epoch, number, image);
      const std::vector<double> wanted = model(list, shape, epoch, number, image);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::abs(got[i] - wanted[i]) <= tolerance) continue;
        ADD_FAILURE() << "kind " << row_of(list.front().kind).name << " of " << list.size() << ", "
                      << shape.channels << " x " << shape.height << " x " << shape.width << ", sample "
                      << sample << ", byte " << i << ": " << int{got[i]} << ", and the definition says "
                      << wanted[i];
        return images;
      }
    }
  }
  return images;
}

/// A half for the last rounding, and an eighth for each of two weights of 11 bits.
constexpr double kOneRounding = 0.5 + 0.25;

TEST(AugmentationTest, EachKindIsItsDefinitionInDoublePrecisionRoundedOnce) {
  int images = 0;
  for (const Augmentation& entry :
       {kCrop, kResizedCrop, kFlip, kRotate, kShift, kScale, kErase, kCutout, kBrighter, kStretched})
    images += expect_model({entry}, kOneRounding);
  images +=
      expect_model({kColourful}, kOneRounding + 0.5 * 0.8);  // the grey is rounded, and 1 - factor of it
  EXPECT_GE(images, 50 * kSamples);
}

TEST(AugmentationTest, MapsAreComposedInTheOrderOfTheList) {
  expect_model({kCrop, kFlip}, 0);  // whole moves copy pixels
  expect_model({kRotate, kScale, kShift, kFlip, kCrop}, kOneRounding);
  expect_model({kShift, kRotate, kResizedCrop}, kOneRounding);
  expect_model({kFlip, kRotate, kErase, kCutout}, kOneRounding);
  expect_model({kFlip, kFlip}, 0);  // each draws for itself
}

/// Each of up to four roundings is carried on by the factors behind it, which are at most 1.2.
TEST(AugmentationTest, ChangesOfPixelsRoundAfterEachFactor) {
  expect_model({kJitter}, 2);
  expect_model({kRotate, kJitter, kCutout}, 3);
}

const List kAll = {kCrop, kFlip, kRotate, kResizedCrop, kShift, kScale, kJitter, kErase, kCutout};

/// GPUs compute the same bytes one by one as CPUs row by row.
TEST(AugmentationTest, RowsHaveTheBytesOfTheDefinition) {
  for (const List& list : {List{kCrop, kFlip}, List{kRotate}, List{kScale, kErase},
                           List{kFlip, kBrighter, kCutout}, List{kColourful}, kAll}) {
    for (const ImageShape& shape : kShapes) {
      if (!fits(list, shape)) continue;
      const AugmentPlan plan = plan_of(list, shape);
      for (std::uint32_t sample = 0; sample < 50; ++sample) {
        const Image image = noise(shape, sample), rows = augmented(plan, 3, sample, image);
        SampleAugment drawn;
        draw_augment(plan, 3, sample, drawn);
        for (int i = 0; i < shape.features(); ++i)
          ASSERT_EQ(rows[static_cast<std::size_t>(i)], augmented_byte(plan, drawn, image.data(), i))
              << "sample " << sample << ", byte " << i;
      }
    }
  }
}

TEST(AugmentationTest, ImagesDependOnSeedEpochAndSampleAlone) {
  const ImageShape shape = {3, 32, 32};
  const Image image = noise(shape, 1);
  AugmentPlan plan = plan_of(kAll, shape);
  const Image first = augmented(plan, 0, 0, image);
  EXPECT_EQ(augmented(plan, 0, 0, image), first);
  EXPECT_NE(augmented(plan, 1, 0, image), first);
  EXPECT_NE(augmented(plan, std::int64_t{1} << 24, 0, image), first);
  EXPECT_NE(augmented(plan, 0, 1, image), first);
  plan.seed += 1;
  EXPECT_NE(augmented(plan, 0, 0, image), first);
}

TEST(AugmentationTest, WhatHasNoChanceNeverHappensAndWhatIsCertainAlways) {
  EXPECT_FALSE(augment::happens(0, 0));
  EXPECT_TRUE(augment::happens(0xFFFFFFFF, 1 << 30));
  EXPECT_TRUE(augment::happens(3, 1)) << "one of 2^30";
  EXPECT_FALSE(augment::happens(4, 1));
}

TEST(AugmentationTest, DrawsAreUniform) {
  const ImageShape shape = {1, 28, 28};
  const AugmentPlan plan = plan_of({kCrop, kFlip}, shape);
  constexpr int kDraws = 90'000;
  std::vector<int> ways(9);
  int mirrored = 0, upside_down = 0;
  for (std::uint32_t sample = 0; sample < kDraws; ++sample) {
    SampleAugment drawn;
    draw_augment(plan, 0, sample, drawn);
    mirrored += drawn.map.xx < 0 ? 1 : 0;
    upside_down += drawn.map.yy < 0 ? 1 : 0;
    const auto x = static_cast<int>(drawn.map.x0 >> augment::kPlaceBits);
    ++ways[static_cast<std::size_t>(4 + (drawn.map.xx < 0 ? x - 27 : x))];
  }
  for (const int count : ways) EXPECT_NEAR(count, kDraws / 9.0, 500);
  EXPECT_NEAR(mirrored, kDraws / 2.0, 750);
  EXPECT_NEAR(upside_down, kDraws / 4.0, 750);
}

/// Coefficients are whole. A mirrored image shows its first pixel 4 aside, or 2 below; 2^12 more round weights.
TEST(AugmentationTest, FlipsAreExact) {
  const AugmentPlan plan = plan_of({kFlip}, {1, 3, 5});
  constexpr std::int64_t kOne = std::int64_t{1} << 24, kRound = 1 << 12;
  for (std::uint32_t sample = 0; sample < 50; ++sample) {
    const augment::Draws draws = augment::draws_of(kSeed, 0, sample, 0);
    const bool mirrored = draws[0] < 1U << 31, upside_down = draws[1] < 1U << 30;
    SampleAugment drawn;
    draw_augment(plan, 0, sample, drawn);
    const AugmentMap& map = drawn.map;
    EXPECT_EQ((std::array<std::int64_t, 6>{map.xx, map.xy, map.yx, map.yy, map.x0, map.y0}),
              (std::array<std::int64_t, 6>{mirrored ? -kOne : kOne, 0, 0, upside_down ? -kOne : kOne,
                                           (mirrored ? 4 * kOne : 0) + kRound,
                                           (upside_down ? 2 * kOne : 0) + kRound}))
        << "sample " << sample;
  }
}

/// Each kind and option as jobs may give it; usual values in thousandths.
TEST(AugmentationTest, KindsTakeWhatTheirRowsSay) {
  const std::string share = ": a number from 0 to 1, usually ",
                    range = ": the least and the largest value, from ";
  const std::string jitter = ": a number from 0 to 8, usually 0 0\n";
  const std::string mix =
      "  alpha: a number from 0.01 to 8, usually 1000 1000\n  probability" + share + "1000 1000\n";
  const std::string sides = "  horizontal" + share + "0 0\n  vertical" + share + "0 0\n";
  std::string text;
  for (const AugmentKindRow& row : augment_kinds()) {
    EXPECT_EQ(&row_of(row.kind), &row);
    text.append(row.name).append(row.wants_one ? ", one of\n" : "\n");
    for (const AugmentOption& option : row.options) {
      text.append("  ").append(option.name).append(": ").append(option.expected());
      text += option.is_required ? ", required\n"
                                 : fmt::format(", usually {} {}\n", std::lround(option.usual[0] * 1000),
                                               std::lround(option.usual[1] * 1000));
    }
  }
  EXPECT_EQ(text,
            "crop\n  padding: a whole number from 1 to 1024, required\n"
            "resized_crop\n  scale" +
                range + "0.01 to 1, such as [0.08, 1], usually 80 1000\n  ratio" + range +
                "0.1 to 10, such as [0.75, 1.3333333333333333], usually 750 1333\nflip, one of\n" + sides +
                "rotate\n  degrees: a number from 0.001 to 180, required\nshift, one of\n" + sides +
                "scale\n  factor" + range + "0.125 to 8, such as [0.9, 1.1], required\njitter, one of\n" +
                "  brightness" + jitter + "  contrast" + jitter + "  saturation" + jitter +
                "erase\n  probability" + share + "500 500\n  scale" + range +
                "0.001 to 1, such as [0.02, 0.33], usually 20 330\n  ratio" + range +
                "0.1 to 10, such as [0.3, 3.3], usually 300 3300\n"
                "cutout\n  size: a whole number from 1 to 1024, required\nmixup\n" +
                mix + "cutmix\n" + mix);
}

TEST(AugmentationTest, SixteenEntriesOfTheLargestNumbersStayInBounds) {
  const Augmentation away = {AugmentKind::kScale, {{{0.125, 0.125}}}},
                     near = {AugmentKind::kScale, {{{8, 8}}}};
  const ImageShape shape = {1, 1, 16384};
  const Image image = noise(shape, 1);
  for (const Augmentation& entry : {away, near, Augmentation{AugmentKind::kShift, {same(1), same(1)}}}) {
    const AugmentPlan plan = plan_of(List(kMostAugmentations, entry), shape);
    for (std::uint32_t sample = 0; sample < 5; ++sample) augmented(plan, 0, sample, image);
  }
}

std::string error_of(const List& list, const Dataset& set) {
  return message_of<ConfigError>([&] { make_augment_plan(list, set, kSeed); });
}

TEST(AugmentationTest, WhatASetCannotHaveIsRefused) {
  EXPECT_EQ(error_of({kJitter}, set_of({1, 28, 28})),
            "augment: jitter.saturation is for images of red, green and blue, and these have 1 channel; "
            "leave it out");
  EXPECT_EQ(
      error_of({kCutout}, set_of({1, 28, 4})),
      "augment: cutout of 5 pixels, but the images are 1 x 28 x 4 (channels x rows x columns); give fewer");
  EXPECT_EQ(
      error_of({kJitter}, set_of({4, 28, 28})),
      "augment: jitter.saturation is for images of red, green and blue, and these have 4 channels; leave it "
      "out");
  EXPECT_EQ(
      error_of({kCrop}, set_of({1, 3, 28})),
      "augment: crop of 4 pixels, but the images are 1 x 3 x 28 (channels x rows x columns); give fewer");
  EXPECT_TRUE(make_augment_plan({kCrop, kCutout}, set_of({1, 5, 5}), kSeed).has_value());
  EXPECT_FALSE(make_augment_plan({}, set_of({1, 28, 28}), kSeed).has_value());
  EXPECT_THROW(plan_of(List(kMostAugmentations + 1, kFlip), {1, 5, 5}), InternalError);
  EXPECT_EQ(error_of({kFlip}, set_of({1, 1, 16385})),
            "augment: images of 1 x 1 x 16385 (channels x rows x columns); at most 16384 pixels on a side "
            "can be augmented");
  Dataset features = set_of({1, 5, 1});
  features.images = {};
  EXPECT_EQ(error_of({kFlip}, features),
            "augment: only images of bytes can be augmented, and this set has features; remove data.augment");
}

}  // namespace
}  // namespace lockstep::augmentation_test
