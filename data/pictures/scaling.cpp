// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Other sizes, in whole numbers. Each new pixel is a sum of old ones, divided once and rounded to the nearest.
#include "common/yaml.hpp"
#include "data/pictures/picture.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep {
namespace {

/// How much of source pixels `first`, `first + 1`, ... one target pixel takes.
struct Coverage {
  int first = 0;
  std::vector<std::uint32_t> weights{};
};

/// Coverages of all target pixels along one side.
struct Coverages {
  std::uint32_t total = 1;  ///< sum of each one's weights, at most 2 kMaxPictureSide
  std::vector<Coverage> targets{};
};

/// The share of each source pixel in the area of a target pixel. Lengths are counted in source pixels divided by the
/// target's size.
Coverage area_of(std::int64_t target, std::int64_t target_size, std::int64_t source_size) {
  const std::int64_t begin = target * source_size, end = begin + source_size;
  Coverage result{.first = static_cast<int>(begin / target_size)};
  for (std::int64_t s = result.first; s * target_size < end; ++s)
    result.weights.push_back(
        static_cast<std::uint32_t>(std::min(end, (s + 1) * target_size) - std::max(begin, s * target_size)));
  return result;
}

/// The two source pixels between whose centres a target pixel's centre lies. Lengths are counted in source pixels
/// divided by twice the target's size.
Coverage between(std::int64_t target, std::int64_t target_size, std::int64_t source_size) {
  const std::int64_t pixel = 2 * target_size;
  const std::int64_t centre =
      std::clamp((2 * target + 1) * source_size - target_size, std::int64_t{0}, (source_size - 1) * pixel);
  if (source_size == 1) return {.first = 0, .weights = {static_cast<std::uint32_t>(pixel)}};
  const std::int64_t first = std::min(centre / pixel, source_size - 2), beyond = centre - first * pixel;
  return {.first = static_cast<int>(first),
          .weights = {static_cast<std::uint32_t>(pixel - beyond), static_cast<std::uint32_t>(beyond)}};
}

Coverages coverages(int target_size, int source_size, bool smoothly) {
  const bool interpolates = smoothly && target_size > source_size;
  Coverages all{.total = static_cast<std::uint32_t>(interpolates ? 2 * target_size : source_size)};
  for (int t = 0; t < target_size; ++t)
    all.targets.push_back(interpolates ? between(t, target_size, source_size)
                                       : area_of(t, target_size, source_size));
  return all;
}

/// sums[x] = the weighted sum of column x. @param plane  one channel of a picture, sums.size() pixels a row
void sum_rows(const std::uint8_t* plane, const Coverage& rows, std::vector<std::uint32_t>& sums) {
  std::fill(sums.begin(), sums.end(), 0U);
  const std::uint8_t* row = plane + static_cast<std::size_t>(rows.first) * sums.size();
  for (const std::uint32_t weight : rows.weights) {
    for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += weight * row[x];
    row += sums.size();
  }
}

/// The length that belongs to `to` as `length` to `from`, at least 1.
int in_proportion(int length, int to, int from) {
  return static_cast<int>(std::max<std::int64_t>(1, (std::int64_t{length} * to + from / 2) / from));
}

/// The middle of a picture, or all of it with black around.
Picture middle_of(const Picture& picture, int width, int height) {
  if (width == picture.width && height == picture.height) return picture;
  return take_part(picture, (picture.width - width) / 2, (picture.height - height) / 2, width, height);
}

}  // namespace

Picture resize(const Picture& picture, int width, int height, bool smoothly) {
  if (width == picture.width && height == picture.height) return picture;
  Picture result = picture;
  result.width = width;
  result.height = height;
  result.pixels.clear();
  result.pixels.reserve(result.plane_size() * static_cast<std::size_t>(result.channels));
  const Coverages rows = coverages(height, picture.height, smoothly),
                  columns = coverages(width, picture.width, smoothly);
  const std::uint64_t total = std::uint64_t{rows.total} * columns.total;
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(picture.width));
  for (std::size_t plane = 0; plane < picture.pixels.size(); plane += picture.plane_size())
    for (const Coverage& row : rows.targets) {
      sum_rows(picture.pixels.data() + plane, row, sums);
      for (const Coverage& column : columns.targets) {
        std::uint64_t sum = total / 2;
        for (std::size_t c = 0; c < column.weights.size(); ++c)
          sum += std::uint64_t{column.weights[c]} * sums[static_cast<std::size_t>(column.first) + c];
        result.pixels.push_back(static_cast<std::uint8_t>(sum / total));
      }
    }
  return result;
}

Picture take_part(const Picture& picture, int left, int top, int width, int height) {
  Picture part = picture;
  part.width = width;
  part.height = height;
  part.pixels.assign(part.plane_size() * static_cast<std::size_t>(part.channels), 0);
  const int begin = std::max(left, 0), end = std::min(left + width, picture.width);
  for (int c = 0; c < picture.channels; ++c)
    for (int y = std::max(top, 0); y < std::min(top + height, picture.height); ++y) {
      const auto from = picture.pixels.begin() + (std::ptrdiff_t{c} * picture.height + y) * picture.width;
      const auto to = part.pixels.begin() + (std::ptrdiff_t{c} * height + y - top) * width;
      std::copy(from + begin, from + end, to + begin - left);
    }
  return part;
}

std::optional<PictureSize> parse_picture_size(std::string_view text) {
  constexpr std::int64_t kLargest = 4096;
  const auto side = [&](std::string_view digits) -> int {
    const auto number = parse_int64(digits);
    return number && *number >= 1 && *number <= kLargest ? static_cast<int>(*number) : 0;
  };
  const auto x = text.find('x');
  const PictureSize size{side(text.substr(0, x)), side(x == text.npos ? text : text.substr(x + 1))};
  if (size.width == 0 || size.height == 0) return std::nullopt;
  return size;
}

Picture fit_picture(const Picture& picture, PictureSize size, PictureFit fit) {
  const std::int64_t wide = std::int64_t{picture.width} * size.height,
                     high = std::int64_t{picture.height} * size.width;
  if (fit == PictureFit::kSqueeze || wide == high) return resize(picture, size.width, size.height);
  const bool too_wide = wide > high;
  if (fit == PictureFit::kCrop) {
    const Picture middle =
        too_wide ? middle_of(picture, in_proportion(picture.height, size.width, size.height), picture.height)
                 : middle_of(picture, picture.width, in_proportion(picture.width, size.height, size.width));
    return resize(middle, size.width, size.height);
  }
  const int width = too_wide ? size.width : in_proportion(picture.width, size.height, picture.height);
  const int height = too_wide ? in_proportion(picture.height, size.width, picture.width) : size.height;
  return middle_of(resize(picture, width, height), size.width, size.height);
}

}  // namespace lockstep
