// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Thresholds that come from the picture itself, and connected components.
#include "common/buffers.hpp"
#include "data/pictures/preparation.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace lockstep {
namespace {

using Histogram = std::array<std::int64_t, 256>;

/// The value that `rank` pixels lie below.
int quantile(const Histogram& histogram, std::int64_t rank) {
  int value = 0;
  for (std::int64_t below = histogram[0]; below <= rank && value < 255; below += at(histogram, value))
    ++value;
  return value;
}

std::int64_t count(const Histogram& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), std::int64_t{0});
}

std::size_t pixel_at(const Picture& picture, int x, int y) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) + static_cast<std::size_t>(x);
}

/// Counts the outermost fiftieth on each side.
Histogram border_histogram(const Picture& picture) {
  const int ring = std::max(1, std::min(picture.width, picture.height) / 50);
  Histogram histogram{};
  for (int y = 0; y < picture.height; ++y) {
    const bool whole_row = y < ring || y >= picture.height - ring;
    for (int x = 0; x < picture.width; ++x) {
      if (!whole_row && x == ring) x = std::max(ring, picture.width - ring);
      ++histogram[picture.pixels[pixel_at(picture, x, y)]];
    }
  }
  return histogram;
}

Histogram deviations(const Histogram& histogram, int level) {
  Histogram result{};
  for (int value = 0; value < 256; ++value) at(result, std::abs(value - level)) += at(histogram, value);
  return result;
}

/// The third moment about the paper's level: noise cancels, ink does not.
bool is_darker(const Histogram& histogram, double level) {
  double moment = 0;
  for (int value = 0; value < 256; ++value) {
    const double deviation = value - level;
    moment += deviation * deviation * deviation * static_cast<double>(at(histogram, value));
  }
  return moment < 0;
}

/// Beyond the two strongest pixels and a few more in a hundred thousand, which may be dirt.
double strongest(const Histogram& histogram, double level, bool darker) {
  const std::int64_t pixels = count(histogram), few = std::min<std::int64_t>(pixels / 50000 + 2, pixels - 1);
  const int value = quantile(histogram, darker ? few : pixels - 1 - few);
  return std::max(0.0, darker ? level - value : value - level);
}

/// Collects a piece from one of its pixels and marks them all as seen.
class PieceFinder {
 public:
  PieceFinder(const Picture& picture, const Paper& paper)
      : picture_(picture), label_(picture.pixels.size(), 0) {
    for (std::size_t i = 0; i < label_.size(); ++i)
      label_[i] = paper.is_ink(picture.pixels[i]) ? kUnseen : kPaper;
  }

  std::vector<Piece> all() {
    std::vector<Piece> pieces;
    for (int y = 0; y < picture_.height; ++y)
      for (int x = 0; x < picture_.width; ++x)
        if (label_[pixel_at(picture_, x, y)] == kUnseen)
          pieces.push_back(grow(x, y, static_cast<int>(pieces.size())));
    return pieces;
  }

  /// Index into all(), or negative.
  int piece_of(std::size_t pixel) const { return label_[pixel]; }

 private:
  static constexpr int kPaper = -1, kUnseen = -2;

  Piece grow(int x, int y, int label) {
    Piece piece{.box = {x, y, x + 1, y + 1}, .pixels = 0};
    todo_.assign(1, {x, y});
    label_[pixel_at(picture_, x, y)] = label;
    while (!todo_.empty()) {
      const auto [px, py] = todo_.back();
      todo_.pop_back();
      ++piece.pixels;
      piece.box = {std::min(piece.box.left, px), std::min(piece.box.top, py),
                   std::max(piece.box.right, px + 1), std::max(piece.box.bottom, py + 1)};
      visit_neighbours(px, py, label);
    }
    return piece;
  }

  void visit_neighbours(int px, int py, int label) {
    for (int y = std::max(0, py - 1); y <= std::min(picture_.height - 1, py + 1); ++y)
      for (int x = std::max(0, px - 1); x <= std::min(picture_.width - 1, px + 1); ++x) {
        int& seen = label_[pixel_at(picture_, x, y)];
        if (seen != kUnseen) continue;
        seen = label;
        todo_.push_back({x, y});
      }
  }

  const Picture& picture_;
  std::vector<int> label_;
  std::vector<std::array<int, 2>> todo_;
};

Box around(const Box& a, const Box& b) {
  return {std::min(a.left, b.left), std::min(a.top, b.top), std::max(a.right, b.right),
          std::max(a.bottom, b.bottom)};
}

/// True within `reach` of a pixel that is true and on the same line.
/// @param place  index of the i-th pixel of a line: place(line, i)
template <typename Place>
std::vector<bool> grown(const std::vector<bool>& mask, int lines, int length, int reach, const Place& place) {
  std::vector<bool> result(mask.size(), false);
  for (int line = 0; line < lines; ++line) {
    int last = -reach - 1;  // the last true pixel, seen from `reach` ahead
    for (int i = -reach; i < length; ++i) {
      if (i + reach < length && mask[place(line, i + reach)]) last = i + reach;
      if (i >= 0 && i - last <= reach) result[place(line, i)] = true;
    }
  }
  return result;
}

}  // namespace

bool Paper::is_blank() const {
  constexpr double kFewestLevels = 6, kFewestDeviations = 4;
  return contrast < kFewestLevels || contrast < kFewestDeviations * noise;
}

double Paper::ink(std::uint8_t value) const {
  const double deviation = light ? level - value : value - level;
  const double low = std::min(std::max(0.08 * contrast, 2 * noise), 0.5 * contrast), high = 0.9 * contrast;
  return std::clamp((deviation - low) / (high - low), 0.0, 1.0);
}

bool Paper::is_ink(std::uint8_t value) const {
  constexpr double kShare = 0.35;
  const double deviation = light ? level - value : value - level;
  return deviation > kShare * contrast;
}

Paper examine_paper(const Picture& picture, Polarity polarity) {
  const Histogram border = border_histogram(picture);
  const int level = quantile(border, count(border) / 2);
  const double noise = 1.4826 * quantile(deviations(border, level), count(border) / 2);
  Histogram whole{};
  for (const std::uint8_t pixel : picture.pixels) ++whole[pixel];
  const bool darker =
      polarity == Polarity::kFromPicture ? is_darker(whole, level) : polarity == Polarity::kDarkInk;
  return {.level = static_cast<double>(level),
          .noise = noise,
          .light = darker,
          .contrast = strongest(whole, level, darker)};
}

Ink find_ink(const Picture& picture, const Paper& paper) {
  constexpr double kSpeck = 0.015;
  PieceFinder finder(picture, paper);
  const std::vector<Piece> all = finder.all();
  std::int64_t largest = 0;
  for (const Piece& piece : all) largest = std::max(largest, piece.pixels);
  const auto is_speck = [&](const Piece& piece) {
    return static_cast<double>(piece.pixels) < kSpeck * static_cast<double>(largest);
  };
  Ink ink;
  for (const Piece& piece : all) {
    if (is_speck(piece)) continue;
    ink.box = ink.empty() ? piece.box : around(ink.box, piece.box);
    ink.pieces.push_back(piece);
  }
  std::ranges::stable_sort(ink.pieces, std::greater(), &Piece::pixels);
  std::vector<bool> mask(picture.pixels.size(), false);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const int piece = finder.piece_of(i);
    mask[i] = piece >= 0 && !is_speck(all[static_cast<std::size_t>(piece)]);
  }
  const int reach = std::max(1, std::max(ink.box.width(), ink.box.height()) / 40);
  mask = grown(mask, picture.height, picture.width, reach,
               [&](int y, int x) { return pixel_at(picture, x, y); });
  ink.mask = grown(mask, picture.width, picture.height, reach,
                   [&](int x, int y) { return pixel_at(picture, x, y); });
  return ink;
}

}  // namespace lockstep
