// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Least squares on a coarse copy, again and again without what does not fit.
#include "data/pictures/preparation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep {

namespace {

constexpr int kTerms = 6, kCoarseSide = 48, kRounds = 6;

using Terms = std::array<double, kTerms>;

/// @param x, y  from -1 to 1 over the picture
Terms terms_at(double x, double y) {
  return {1, x, y, x * x, x * y, y * y};
}

double value(const Terms& surface, const Terms& terms) {
  double sum = 0;
  for (std::size_t i = 0; i < kTerms; ++i) sum += surface[i] * terms[i];
  return sum;
}

/// Normal equations of a least-squares fit, solved by elimination; a little is added to the diagonal, so that
/// there is always a solution.
class SurfaceFit {
 public:
  void add(const Terms& terms, double target) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t j = 0; j < kTerms; ++j) matrix_[i][j] += terms[i] * terms[j];
      right_[i] += terms[i] * target;
    }
  }

  Terms solve() {
    constexpr double kRidge = 1e-3;
    for (std::size_t i = 0; i < kTerms; ++i) matrix_[i][i] += kRidge;
    for (std::size_t pivot = 0; pivot < kTerms; ++pivot) {
      for (std::size_t row = pivot + 1; row < kTerms; ++row) subtract(row, pivot);
    }
    Terms surface{};
    for (std::size_t i = kTerms; i-- > 0;) {
      double rest = right_[i];
      for (std::size_t j = i + 1; j < kTerms; ++j) rest -= matrix_[i][j] * surface[j];
      surface[i] = rest / matrix_[i][i];
    }
    return surface;
  }

 private:
  void subtract(std::size_t row, std::size_t pivot) {
    const double factor = matrix_[row][pivot] / matrix_[pivot][pivot];
    for (std::size_t j = pivot; j < kTerms; ++j) matrix_[row][j] -= factor * matrix_[pivot][j];
    right_[row] -= factor * right_[pivot];
  }

  std::array<Terms, kTerms> matrix_{};
  Terms right_{};
};

double position(int i, int count) {
  return count > 1 ? 2.0 * i / (count - 1) - 1 : 0;
}

struct Cell {
  Terms terms;
  double grey;
  bool at_border;
};

std::vector<Cell> cells_of(const Picture& picture) {
  const int width = std::min(picture.width, kCoarseSide), height = std::min(picture.height, kCoarseSide);
  const Picture coarse = resize(picture, width, height);
  const int ring = std::max(1, std::min(width, height) / 10);
  std::vector<Cell> cells;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool at_border = x < ring || y < ring || x >= width - ring || y >= height - ring;
      cells.push_back({terms_at(position(x, width), position(y, height)),
                       static_cast<double>(coarse.pixels[cells.size()]), at_border});
    }
  }
  return cells;
}

/// Half of the cells that may count are nearer to the surface than this.
double median_distance(const std::vector<Cell>& cells, const Terms& surface, bool border_only) {
  std::vector<double> distances;
  for (const Cell& cell : cells) {
    if (!border_only || cell.at_border) distances.push_back(std::abs(cell.grey - value(surface, cell.terms)));
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

/// Starts from the border, where there is seldom ink.
Terms fit_paper(const std::vector<Cell>& cells) {
  Terms surface{};
  double reach = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const bool border_only = round < kRounds / 2;
    SurfaceFit fit;
    for (const Cell& cell : cells) {
      if (border_only && !cell.at_border) continue;
      if (std::abs(cell.grey - value(surface, cell.terms)) <= reach) fit.add(cell.terms, cell.grey);
    }
    surface = fit.solve();
    reach = std::max(3.0, 3 * median_distance(cells, surface, true));
  }
  return surface;
}

}  // namespace

Picture evenly_lit(const Picture& picture) {
  constexpr double kEven = 4;    // grey levels between the lightest and darkest place
  constexpr double kSmooth = 6;  // grey levels that half of the border keeps to
  constexpr int kSmallest = 16;
  if (std::min(picture.width, picture.height) < kSmallest) return picture;
  const std::vector<Cell> cells = cells_of(picture);
  const Terms surface = fit_paper(cells);
  double low = 1e9, high = -1e9, sum = 0;
  for (const Cell& cell : cells) {
    const double level = value(surface, cell.terms);
    low = std::min(low, level);
    high = std::max(high, level);
    sum += level;
  }
  const bool is_paper = median_distance(cells, surface, true) < kSmooth;  // and not ink, cut at its edges
  if (high - low < kEven || !is_paper) return picture;
  const double mean = sum / static_cast<double>(cells.size());
  Picture even = picture;
  std::size_t i = 0;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x, ++i) {
      const double shade =
          value(surface, terms_at(position(x, picture.width), position(y, picture.height))) - mean;
      even.pixels[i] =
          static_cast<std::uint8_t>(std::clamp(std::lround(picture.pixels[i] - shade), 0L, 255L));
    }
  }
  return even;
}

// Affine maps with linear interpolation.

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
