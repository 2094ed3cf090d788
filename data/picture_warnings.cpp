// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rules of thumb about pieces of ink.
#include "data/picture_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

/// On one to three sides; ink that reaches all four was trimmed to its box.
bool looks_cut_off(const Picture& picture, const Box& box) {
  const int sides =
      (box.left == 0) + (box.top == 0) + (box.right == picture.width) + (box.bottom == picture.height);
  return sides > 0 && sides < 4;
}

std::int64_t area(const Box& box) {
  return static_cast<std::int64_t>(box.width()) * box.height();
}

std::int64_t overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                 std::min(a.bottom, b.bottom)};
  return both.width() > 0 && both.height() > 0 ? area(both) : 0;
}

/// A second piece about as large as the first and beside, above or below it. The bar of a 5 that hangs in the
/// air is far less high than the rest.
bool looks_like_two(const std::vector<Piece>& pieces) {
  constexpr double kSimilarHeight = 0.45, kSimilarPixels = 0.2, kApart = 0.3;
  const Piece& first = pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const Piece& other = pieces[i];
    const double smaller = static_cast<double>(std::min(area(first.box), area(other.box)));
    if (other.box.height() >= kSimilarHeight * first.box.height() &&
        static_cast<double>(other.pixels) >= kSimilarPixels * static_cast<double>(first.pixels) &&
        static_cast<double>(overlap(first.box, other.box)) <= kApart * smaller)
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> picture_warnings(const Picture& picture, const Ink& ink, const PictureFrame& frame) {
  constexpr int kFewestPixels = 7;
  constexpr std::size_t kManyPieces = 5;
  constexpr double kWide = 1.2, kSolid = 0.75;
  const Box& box = ink.box;
  std::vector<std::string> warnings;
  if (looks_cut_off(picture, box)) warnings.emplace_back("it touches the edge: is it all there?");
  if (std::max(box.width(), box.height()) < kFewestPixels)
    warnings.push_back(fmt::format("it is only {} pixels high", box.height()));
  if (!frame.one_figure) return warnings;
  std::int64_t pixels = 0;
  for (const Piece& piece : ink.pieces) pixels += piece.pixels;
  if (ink.pieces.size() >= kManyPieces) {
    warnings.push_back(fmt::format("it is in {} pieces", ink.pieces.size()));
  } else if (looks_like_two(ink.pieces)) {
    warnings.emplace_back("two figures? only one is expected");
  } else if (box.width() > kWide * box.height()) {
    warnings.emplace_back("it is wider than high: more than one figure?");
  } else if (static_cast<double>(pixels) > kSolid * static_cast<double>(area(box)) &&
             box.width() * 2 > box.height()) {
    warnings.emplace_back("it is a filled shape, not strokes");
  }
  return warnings;
}

}  // namespace lockstep
