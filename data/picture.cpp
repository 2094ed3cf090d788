// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scaling by areas, inverting, and whether the background is light.
#include "data/picture.hpp"

#include "common/error.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// How much of source pixels `first`, `first + 1`, ... one target pixel takes.
struct Coverage {
  int first = 0;
  std::vector<double> weights;  ///< add up to 1
};

/// The share of each source pixel in the area of a target pixel.
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

/// The two source pixels whose centres a target pixel's centre lies between.
Coverage between(int target, int target_size, int source_size) {
  const double centre = (target + 0.5) * source_size / target_size - 0.5;
  const double inside = std::clamp(centre, 0.0, static_cast<double>(source_size - 1));
  const int first = std::min(static_cast<int>(inside), std::max(0, source_size - 2));
  if (source_size == 1) return {.first = 0, .weights = {1}};
  return {.first = first, .weights = {1 - (inside - first), inside - first}};
}

std::vector<Coverage> coverages(int target_size, int source_size, bool smoothly) {
  std::vector<Coverage> all;
  for (int t = 0; t < target_size; ++t) {
    all.push_back(smoothly && target_size > source_size ? between(t, target_size, source_size)
                                                        : coverage(t, target_size, source_size));
  }
  return all;
}

/// @param plane  one channel of a picture, `width` pixels a row
double weighted(std::span<const std::uint8_t> plane, int width, const Coverage& rows,
                const Coverage& columns) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.weights.size(); ++r) {
    const auto row = (static_cast<std::size_t>(rows.first) + r) * static_cast<std::size_t>(width);
    double row_sum = 0;
    for (std::size_t c = 0; c < columns.weights.size(); ++c)
      row_sum += columns.weights[c] * plane[row + static_cast<std::size_t>(columns.first) + c];
    sum += rows.weights[r] * row_sum;
  }
  return sum;
}

Picture scaled(const Picture& picture, int width, int height, bool smoothly) {
  Picture result = picture;
  if (width == picture.width && height == picture.height) return result;
  result.width = width;
  result.height = height;
  result.pixels.clear();
  const auto all_rows = coverages(height, picture.height, smoothly),
             all_columns = coverages(width, picture.width, smoothly);
  for (std::size_t at = 0; at < picture.pixels.size(); at += picture.plane_size()) {
    const auto plane = std::span(picture.pixels).subspan(at, picture.plane_size());
    for (const Coverage& rows : all_rows) {
      for (const Coverage& columns : all_columns) {
        const double value = weighted(plane, picture.width, rows, columns);
        result.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0)));
      }
    }
  }
  return result;
}

}  // namespace

Picture resize(const Picture& picture, int width, int height) {
  return scaled(picture, width, height, false);
}

Picture resize_smoothly(const Picture& picture, int width, int height) {
  return scaled(picture, width, height, true);
}

void invert(Picture& picture) {
  for (auto& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

bool has_light_background(const Picture& picture) {
  return has_light_border(picture.pixels, picture.shape());
}

bool has_light_border(std::span<const std::uint8_t> pixels, const ImageShape& shape) {
  const auto [channels, height, width] = shape;
  std::int64_t sum = 0, count = 0;
  const auto add = [&](std::int64_t row, int x) {
    sum += pixels[static_cast<std::size_t>(row * shape.width + x)];
    ++count;
  };
  for (std::int64_t row = 0; row < std::int64_t{channels} * height; ++row) {
    const bool whole_row = row % height == 0 || row % height + 1 == height;
    for (int x = 0; x < width; x += whole_row || width == 1 ? 1 : width - 1) add(row, x);
  }
  return count > 0 && sum > 127 * count;
}

}  // namespace lockstep
