// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A person's picture made into an image as the training set holds them. The ink becomes light on black, is cut out,
/// scaled and centred.
#pragma once

#include "data/pictures/picture.hpp"
#include "data/sets/catalogue.hpp"

#include <string>
#include <vector>

namespace lockstep {

// Finding the writing on a picture: which pixels are ink, and what pieces they form.

/// Columns and rows from first to before last.
struct Box {
  int left = 0, top = 0, right = 0, bottom = 0;

  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

/// Strokes may be darker or lighter than what they are drawn on.
enum class Polarity { kFromPicture, kDarkInk, kLightInk };

/// The paper of a picture, and the difference of ink from it, in grey levels.
struct Paper {
  double level = 0;     ///< the median of the border
  double noise = 0;     ///< one standard deviation of the border, told from its median deviation
  bool light = false;   ///< the ink is darker than the paper
  double contrast = 0;  ///< the strongest ink's, robust against single pixels

  /// Too little to tell from noise, or from paper.
  bool is_blank() const;
  /// Share of ink in pixel `value`, 0 to 1. It grows from well above the noise to nine tenths of the contrast.
  double ink(std::uint8_t value) const;
  /// True if a pixel counts as ink for finding its outline.
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

/// @param paper  paper of this picture
Ink find_ink(const Picture& picture, const Paper& paper);

struct PreparedPicture {
  Picture picture;                    ///< in the training images' size
  std::vector<std::string> done;      ///< changes made to it, in words: "inverted", "cut out and centred"
  std::vector<std::string> warnings;  ///< why the answer may be wrong: "nothing on it", "two figures?"
};

/// Finds the ink, stretches its contrast, scales its box to the frame's share and centres it. It is what the makers
/// of MNIST did to their scans. A picture that already looks like that (its size, black paper, ink placed so)
/// is taken as it is.
/// @param polarity  kFromPicture: told from the border
PreparedPicture prepare_picture(const Picture& picture, int width, int height, const PictureFrame& frame,
                                Polarity polarity);

/// Only scaled to the size, and inverted where `polarity` says so or the border is light.
PreparedPicture scale_picture(const Picture& picture, int width, int height, Polarity polarity);

}  // namespace lockstep
