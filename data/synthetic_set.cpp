// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Drawing the set `synthetic`: a digit's strokes, bent and moved at random, inked by a round pen, and noise.
#include "data/synthetic_set.hpp"

#include "common/advice.hpp"
#include "common/checked_size.hpp"
#include "common/memory.hpp"
#include "data/digit_strokes.hpp"
#include "data/draws.hpp"
#include "data/pen.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::size_t kPixels = std::size_t{kSyntheticSetSide} * kSyntheticSetSide;
using Image = std::span<std::uint8_t, kPixels>;

/// From the unit box of a glyph (y down) to pixels.
struct Placement {
  float centre_x, centre_y, width, height, slant;

  Point operator()(Point p) const {
    const float u = p.x - 0.5F, v = p.y - 0.5F;
    return {centre_x + width * u - slant * height * v, centre_y + height * v};
  }
};

Placement random_placement(Draws& draws) {
  constexpr float kMiddle = 0.5F * static_cast<float>(kSyntheticSetSide - 1);
  return {.centre_x = kMiddle + draws.uniform(-2.5F, 2.5F),
          .centre_y = kMiddle + draws.uniform(-2.5F, 2.5F),
          .width = draws.uniform(9.0F, 13.5F),
          .height = draws.uniform(15.5F, 20.0F),
          .slant = draws.uniform(-0.1F, 0.35F)};
}

/// A hand is not steady: every point of a stroke is off by a little.
Point wobbled(Point p, Draws& draws) {
  return {p.x + draws.uniform(-0.06F, 0.06F), p.y + draws.uniform(-0.04F, 0.04F)};
}

void draw_strokes(std::span<const Curve> strokes, const Placement& place, Draws& draws, Pen& pen) {
  for (const Curve& curve : strokes)
    pen.draw({place(wobbled(curve.from, draws)), place(wobbled(curve.control, draws)),
              place(wobbled(curve.to, draws))});
}

/// Ink on paper that is not quite clean: each pixel is off by up to 16.
void develop(const Pen& pen, float ink, Draws& draws, Image image) {
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
std::int32_t draw_sample(Draws draws, Image image) {
  const auto digit = static_cast<std::int32_t>(draws.below(kSyntheticSetClasses));
  const Placement place = random_placement(draws);
  Pen pen(kSyntheticSetSide, draws.uniform(0.9F, 1.7F));
  const float ink = draws.uniform(200.0F, 270.0F);
  draw_strokes(strokes_of_digit(digit), place, draws, pen);
  develop(pen, ink, draws, image);
  return digit;
}

Dataset make_half(std::uint64_t seed, DataStream stream, const char* name, std::int64_t samples) {
  Dataset set;
  set.name = name;
  set.shape = {1, kSyntheticSetSide, kSyntheticSetSide};
  set.classes = kSyntheticSetClasses;
  set.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(samples) * kPixels);
  set.labels.reserve(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const Image image(set.images.data() + static_cast<std::size_t>(i) * kPixels, kPixels);
    set.labels.push_back(draw_sample(Draws(seed, stream, static_cast<std::uint32_t>(i)), image));
  }
  return set;
}

}  // namespace

TrainTestData make_synthetic_set(const DatasetOptions& options) {
  const auto train = options.train_samples != 0 ? options.train_samples : kSyntheticSetTrainSamples;
  const auto test = options.test_samples != 0 ? options.test_samples : kSyntheticSetTestSamples;
  require_memory(checked_product(checked_sum(train, test), kPixels + sizeof(std::int32_t)),
                 "the data set synthetic", advice("lower {sample_counts}"));
  TrainTestData data;
  data.train = make_half(options.seed, DataStream::kSyntheticTrain, "synthetic train", train);
  data.test = make_half(options.seed, DataStream::kSyntheticTest, "synthetic test", test);
  return data;
}

}  // namespace lockstep
