// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets that are made and not read: random numbers, and digits that are drawn.
#include "data/sets/made_sets.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/numerics/portable_math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep {

namespace {

/// A set as its entry has it, of as many samples as are asked for.
/// @param samples  Dataset's images or features
/// @param streams  of the training half and the test half
/// @param draw     writes the numbers of a sample, and returns its label
template <typename Number, typename Draw>
TrainTestData make_set(const SetEntry& entry, const DatasetOptions& options,
                       AlignedBuffer<Number> Dataset::*samples, const std::array<DataStream, 2>& streams,
                       const Draw& draw) {
  const auto features = static_cast<std::size_t>(entry.shape.features());
  const std::array counts = {options.train_samples != 0 ? options.train_samples : entry.train_samples,
                             options.test_samples != 0 ? options.test_samples : entry.test_samples};
  require_memory(
      checked_product(checked_sum(counts[0], counts[1]), features * sizeof(Number) + sizeof(std::int32_t)),
      "the data set " + entry.name, advice("lower {sample_counts}"));
  TrainTestData data;
  for (const SetHalf which : {SetHalf::kTrain, SetHalf::kTest}) {
    const auto h = static_cast<std::size_t>(which), count = static_cast<std::size_t>(counts[h]);
    Dataset& half = data.half(which);
    half.name = fmt::format("{} {}", entry.name, name_of(which));
    half.shape = entry.shape;
    half.classes = static_cast<int>(entry.class_names.size());
    half.*samples = AlignedBuffer<Number>(count * features);
    for (std::size_t i = 0; i < count; ++i) {
      const SampleDraws draws(options.seed, streams[h], static_cast<std::uint32_t>(i));
      half.labels.push_back(draw(draws, (half.*samples).span().subspan(i * features, features)));
    }
  }
  return data;
}

// Making the set `random`.

/// The class whose row of `map` has the largest product with the features.
std::int32_t label_of(std::span<const float> features, std::span<const float> map) {
  std::vector<float> products(map.size() / features.size());
  for (std::size_t c = 0; c < products.size(); ++c)
    for (std::size_t f = 0; f < features.size(); ++f)
      products[c] += map[c * features.size() + f] * features[f];
  return static_cast<std::int32_t>(std::ranges::max_element(products) - products.begin());
}

}  // namespace

TrainTestData make_random_set(const SetEntry& set, const DatasetOptions& options) {
  std::vector<float> map(set.class_names.size() * static_cast<std::size_t>(set.shape.features()));
  SampleDraws of_map(options.seed, DataStream::kRandomMap, 0);
  for (float& weight : map) weight = static_cast<float>(of_map.normal());
  return make_set(set, options, &Dataset::features, {DataStream::kRandomTrain, DataStream::kRandomTest},
                  [&](SampleDraws draws, std::span<float> features) {
                    for (float& feature : features) feature = static_cast<float>(draws.normal());
                    return label_of(features, map);
                  });
}

// Normal numbers.

double SampleDraws::normal() {
  return normal_quantile((bits() + 0.5) / 4294967296.0);
}

// Drawing the set `synthetic`: a digit's strokes, bent and moved at random, inked by a round pen, and noise.

namespace {

constexpr int kSide = 28;
constexpr std::uint32_t kDigits = 10;
constexpr std::size_t kPixels = std::size_t{kSide} * kSide;
using Image = std::span<std::uint8_t, kPixels>;

/// From the unit box of a glyph (y down) to pixels.
struct Placement {
  float centre_x, centre_y, width, height, slant;

  Point operator()(Point p) const {
    const float u = p.x - 0.5F, v = p.y - 0.5F;
    return {centre_x + width * u - slant * height * v, centre_y + height * v};
  }
};

Placement random_placement(SampleDraws& draws) {
  constexpr float kMiddle = 0.5F * static_cast<float>(kSide - 1);
  return {.centre_x = kMiddle + draws.uniform(-2.5F, 2.5F),
          .centre_y = kMiddle + draws.uniform(-2.5F, 2.5F),
          .width = draws.uniform(9.0F, 13.5F),
          .height = draws.uniform(15.5F, 20.0F),
          .slant = draws.uniform(-0.1F, 0.35F)};
}

/// A hand is not steady: every point of a stroke is off by a little.
Point wobbled(Point p, SampleDraws& draws) {
  return {p.x + draws.uniform(-0.06F, 0.06F), p.y + draws.uniform(-0.04F, 0.04F)};
}

void draw_strokes(std::span<const Stroke> strokes, const Placement& place, SampleDraws& draws, Pen& pen) {
  for (const Stroke& curve : strokes)
    pen.draw({place(wobbled(curve.from, draws)), place(wobbled(curve.control, draws)),
              place(wobbled(curve.to, draws))});
}

/// Ink on paper that is not quite clean: each pixel is off by up to 16.
void develop(const Pen& pen, float ink, SampleDraws& draws, Image image) {
  std::array<float, kPixels> coverage;
  pen.coverage(coverage);
  for (std::size_t i = 0; i < kPixels; i += 4) {
    const std::uint32_t noise = draws.bits();
    for (std::size_t k = 0; k < 4; ++k) {
      const float grain = static_cast<float>(noise >> (8 * k) & 0xFFU) * (1.0F / 8.0F) - 16.0F;
      image[i + k] = static_cast<std::uint8_t>(std::clamp(coverage[i + k] * ink + grain, 0.0F, 255.0F));
    }
  }
}

/// Draws one image and returns its label.
std::int32_t draw_sample(SampleDraws draws, Image image) {
  const auto digit = static_cast<std::int32_t>(draws.below(kDigits));
  const Placement place = random_placement(draws);
  Pen pen(kSide, draws.uniform(0.9F, 1.7F));
  const float ink = draws.uniform(200.0F, 270.0F);
  draw_strokes(strokes_of_digit(digit), place, draws, pen);
  develop(pen, ink, draws, image);
  return digit;
}

}  // namespace

TrainTestData make_synthetic_set(const SetEntry& set, const DatasetOptions& options) {
  return make_set(set, options, &Dataset::images, {DataStream::kSyntheticTrain, DataStream::kSyntheticTest},
                  [](const SampleDraws& draws, std::span<std::uint8_t> image) {
                    return draw_sample(draws, image.first<kPixels>());
                  });
}

// The shapes of the ten digits.

namespace {

constexpr Stroke kZero[] = {{{0.5F, 0}, {1, 0}, {1, 0.5F}},
                            {{1, 0.5F}, {1, 1}, {0.5F, 1}},
                            {{0.5F, 1}, {0, 1}, {0, 0.5F}},
                            {{0, 0.5F}, {0, 0}, {0.5F, 0}}};
constexpr Stroke kOne[] = {{{0.3F, 0.2F}, {0.45F, 0.15F}, {0.55F, 0}},
                           {{0.55F, 0}, {0.55F, 0.5F}, {0.55F, 1}}};
constexpr Stroke kTwo[] = {{{0.05F, 0.25F}, {0.1F, 0}, {0.5F, 0}},
                           {{0.5F, 0}, {1, 0}, {0.9F, 0.35F}},
                           {{0.9F, 0.35F}, {0.8F, 0.6F}, {0.05F, 1}},
                           {{0.05F, 1}, {0.5F, 0.97F}, {1, 1}}};
constexpr Stroke kThree[] = {{{0.05F, 0.1F}, {0.9F, -0.15F}, {0.85F, 0.25F}},
                             {{0.85F, 0.25F}, {0.8F, 0.48F}, {0.35F, 0.48F}},
                             {{0.35F, 0.48F}, {0.95F, 0.48F}, {0.95F, 0.75F}},
                             {{0.95F, 0.75F}, {0.9F, 1.1F}, {0.05F, 0.92F}}};
constexpr Stroke kFour[] = {{{0.65F, 0}, {0.4F, 0.35F}, {0.05F, 0.65F}},
                            {{0.05F, 0.65F}, {0.5F, 0.65F}, {1, 0.65F}},
                            {{0.72F, 0.3F}, {0.72F, 0.6F}, {0.7F, 1}}};
constexpr Stroke kFive[] = {{{0.9F, 0}, {0.5F, 0.02F}, {0.2F, 0}},
                            {{0.2F, 0}, {0.15F, 0.2F}, {0.12F, 0.45F}},
                            {{0.12F, 0.45F}, {0.9F, 0.3F}, {0.92F, 0.68F}},
                            {{0.92F, 0.68F}, {0.9F, 1.1F}, {0.05F, 0.92F}}};
constexpr Stroke kSix[] = {{{0.75F, 0}, {0.1F, 0.25F}, {0.08F, 0.65F}},
                           {{0.08F, 0.65F}, {0.1F, 1.02F}, {0.5F, 1}},
                           {{0.5F, 1}, {0.95F, 1}, {0.92F, 0.7F}},
                           {{0.92F, 0.7F}, {0.75F, 0.35F}, {0.1F, 0.62F}}};
constexpr Stroke kSeven[] = {{{0.05F, 0}, {0.5F, 0.02F}, {0.95F, 0}}, {{0.95F, 0}, {0.6F, 0.4F}, {0.4F, 1}}};
constexpr Stroke kEight[] = {{{0.5F, 0.47F}, {-0.15F, 0.2F}, {0.5F, 0}},
                             {{0.5F, 0}, {1.15F, 0.2F}, {0.5F, 0.47F}},
                             {{0.5F, 0.47F}, {-0.35F, 0.85F}, {0.5F, 1}},
                             {{0.5F, 1}, {1.35F, 0.85F}, {0.5F, 0.47F}}};
constexpr Stroke kNine[] = {{{0.9F, 0.3F}, {0.85F, -0.05F}, {0.45F, 0}},
                            {{0.45F, 0}, {0.05F, 0.05F}, {0.1F, 0.32F}},
                            {{0.1F, 0.32F}, {0.25F, 0.65F}, {0.9F, 0.3F}},
                            {{0.9F, 0.3F}, {0.9F, 0.7F}, {0.65F, 1}}};

}  // namespace

std::span<const Stroke> strokes_of_digit(std::int32_t digit) {
  static constexpr std::array<std::span<const Stroke>, kDigits> kStrokes = {
      kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};
  LOCKSTEP_CHECK(digit >= 0 && digit < static_cast<std::int32_t>(kStrokes.size()));
  return at(kStrokes, digit);
}

// Drawing by distance.

namespace {

constexpr int kLinesPerCurve = 6;  // bends of a 15-pixel stroke are then off by less than a tenth of a pixel
constexpr float kFar = 1e6F;

Point on_curve(const Stroke& curve, float t) {
  const float a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
  return {a * curve.from.x + b * curve.control.x + c * curve.to.x,
          a * curve.from.y + b * curve.control.y + c * curve.to.y};
}

/// Pixels from low to high, both included, that lie on the picture.
struct Range {
  int first, last;
};

Range pixels_between(float low, float high, int side) {
  return {std::max(0, static_cast<int>(std::floor(low))),
          std::min(side - 1, static_cast<int>(std::ceil(high)))};
}

}  // namespace

Pen::Pen(int side, float radius)
    : side_(side),
      radius_(radius),
      nearest_(static_cast<std::size_t>(side) * static_cast<std::size_t>(side), kFar) {}

void Pen::draw(const Stroke& curve) {
  Point from = curve.from;
  for (int i = 1; i <= kLinesPerCurve; ++i) {
    const Point to = on_curve(curve, static_cast<float>(i) / kLinesPerCurve);
    draw_line(from, to);
    from = to;
  }
}

void Pen::draw_line(Point from, Point to) {
  const float reach = radius_ + 0.5F;
  const Range rows = pixels_between(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach, side_);
  const Range columns = pixels_between(std::min(from.x, to.x) - reach, std::max(from.x, to.x) + reach, side_);
  const float dx = to.x - from.x, dy = to.y - from.y;
  const float scale = 1.0F / std::max(dx * dx + dy * dy, 1e-6F);
  for (int row = rows.first; row <= rows.last; ++row) {
    float* nearest = nearest_.data() + static_cast<std::ptrdiff_t>(row) * side_;
    const float py = static_cast<float>(row) - from.y;
    for (int column = columns.first; column <= columns.last; ++column) {
      const float px = static_cast<float>(column) - from.x;
      const float t = std::clamp((px * dx + py * dy) * scale, 0.0F, 1.0F);
      const float x = px - t * dx, y = py - t * dy;
      nearest[column] = std::min(nearest[column], x * x + y * y);
    }
  }
}

void Pen::coverage(std::span<float> coverage) const {
  for (std::size_t i = 0; i < coverage.size(); ++i)
    coverage[i] = std::clamp(radius_ + 0.5F - std::sqrt(nearest_[i]), 0.0F, 1.0F);
}

}  // namespace lockstep
