// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/picture.hpp"

#include "kernels/runtime/error.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// How much of source pixels `first`, `first + 1`, ... one target pixel covers.
struct Coverage {
  int first = 0;
  std::vector<double> weights;  ///< add up to 1
};

Coverage coverage(int target, int target_size, int source_size) {
  const double scale = static_cast<double>(source_size) / target_size;
  const double begin = target * scale, end = (target + 1) * scale;
  Coverage result{.first = static_cast<int>(begin), .weights = {}};
  for (int s = result.first; s < source_size && s < end; ++s) {
    const double overlap = std::min<double>(end, s + 1) - std::max<double>(begin, s);
    result.weights.push_back(overlap / scale);
  }
  return result;
}

}  // namespace

Picture resize(const Picture& picture, int width, int height) {
  if (width == picture.width && height == picture.height) return picture;
  Picture result{.name = picture.name, .width = width, .height = height, .pixels = {}};
  result.pixels.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    const Coverage rows = coverage(y, height, picture.height);
    for (int x = 0; x < width; ++x) {
      const Coverage columns = coverage(x, width, picture.width);
      double sum = 0;
      for (std::size_t r = 0; r < rows.weights.size(); ++r) {
        const auto row = (static_cast<std::size_t>(rows.first) + r) * static_cast<std::size_t>(picture.width);
        for (std::size_t c = 0; c < columns.weights.size(); ++c) {
          sum += rows.weights[r] * columns.weights[c] *
                 picture.pixels[row + static_cast<std::size_t>(columns.first) + c];
        }
      }
      result.pixels.push_back(static_cast<std::uint8_t>(std::clamp(sum + 0.5, 0.0, 255.0)));
    }
  }
  return result;
}

void invert(Picture& picture) {
  for (auto& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

bool has_light_background(const Picture& picture) {
  return has_light_border(picture.pixels, picture.width, picture.height);
}

bool has_light_border(std::span<const std::uint8_t> pixels, int width, int height) {
  std::int64_t sum = 0, count = 0;
  const auto add = [&](int y, int x) {
    sum +=
        pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
    ++count;
  };
  for (int y = 0; y < height; ++y) {
    const bool whole_row = y == 0 || y + 1 == height;
    for (int x = 0; x < width; x += whole_row || width == 1 ? 1 : width - 1) add(y, x);
  }
  return count > 0 && sum > 127 * count;
}

}  // namespace lockstep
