// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Affine maps with linear interpolation.
#include "data/picture_variants.hpp"

#include <array>
#include <cmath>

namespace lockstep {
namespace {

/// From a pixel of the result, relative to the middle, to where it comes from.
struct Map {
  double xx, xy, yx, yy;
};

double pixel_or_black(const Picture& picture, int x, int y) {
  if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) return 0;
  return picture.pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                        static_cast<std::size_t>(x)];
}

double interpolated(const Picture& picture, double x, double y) {
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double right_share = x - left, bottom_share = y - top;
  const double upper = pixel_or_black(picture, left, top) * (1 - right_share) +
                       pixel_or_black(picture, left + 1, top) * right_share;
  const double lower = pixel_or_black(picture, left, top + 1) * (1 - right_share) +
                       pixel_or_black(picture, left + 1, top + 1) * right_share;
  return upper * (1 - bottom_share) + lower * bottom_share;
}

Picture mapped(const Picture& picture, const Map& map) {
  Picture result = picture;
  const double middle_x = (picture.width - 1) / 2.0, middle_y = (picture.height - 1) / 2.0;
  std::size_t i = 0;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x, ++i) {
      const double dx = x - middle_x, dy = y - middle_y;
      result.pixels[i] = static_cast<std::uint8_t>(std::lround(
          interpolated(picture, middle_x + map.xx * dx + map.xy * dy, middle_y + map.yx * dx + map.yy * dy)));
    }
  }
  return result;
}

}  // namespace

std::vector<Picture> written_differently(const Picture& picture) {
  constexpr double kLean = 0.2, kSine = 0.17, kCosine = 0.985, kSmaller = 1.12, kLarger = 0.9;
  static constexpr std::array<Map, 8> kMaps = {{{1, kLean, 0, 1},
                                                {1, -kLean, 0, 1},
                                                {kCosine, kSine, -kSine, kCosine},
                                                {kCosine, -kSine, kSine, kCosine},
                                                {kSmaller, 0, 0, kSmaller},
                                                {kLarger, 0, 0, kLarger},
                                                {kSmaller, 0, 0, 1},
                                                {kLarger, 0, 0, 1}}};
  std::vector<Picture> variants;
  for (const Map& map : kMaps) variants.push_back(mapped(picture, map));
  return variants;
}

}  // namespace lockstep
