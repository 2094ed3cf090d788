// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Finding the writing on a picture: which pixels are ink, and what pieces they form.
#pragma once

#include "data/pictures/picture.hpp"

#include <array>
#include <vector>

namespace lockstep {

/// Columns and rows from first to before last.
struct Box {
  int left = 0, top = 0, right = 0, bottom = 0;

  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

/// Strokes may be darker or lighter than what they are drawn on.
enum class Polarity { kFromPicture, kDarkInk, kLightInk };

/// The paper of a picture and how far ink stands out from it, in grey levels.
struct Paper {
  double level = 0;     ///< the median of the border
  double noise = 0;     ///< one standard deviation of the border, told from its median deviation
  bool light = false;   ///< the ink is darker than the paper
  double contrast = 0;  ///< of the strongest ink, robust against single pixels

  /// Too little to tell from noise, or from paper.
  bool is_blank() const;
  /// How much of pixel `value` is ink, 0 to 1: from well above the noise to nine tenths of the contrast.
  double ink(std::uint8_t value) const;
  /// What counts as ink for finding its outline.
  bool is_ink(std::uint8_t value) const;
};

Paper examine_paper(const Picture& picture, Polarity polarity);

/// Pixels of ink that touch, also at corners.
struct Piece {
  Box box;
  std::int64_t pixels = 0;
};

struct Ink {
  std::vector<Piece> pieces;  ///< largest first; without specks, which are much smaller than the largest
  Box box;                    ///< around all pieces
  std::vector<bool> mask;     ///< [height][width]: belongs to a piece, or is next to one

  bool empty() const { return pieces.empty(); }
};

/// @param paper  of this picture
Ink find_ink(const Picture& picture, const Paper& paper);

}  // namespace lockstep
