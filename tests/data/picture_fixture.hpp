// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures made by hand: digits drawn with a pen, and files of every format that predict reads.
#pragma once

#include "data/pictures/picture.hpp"
#include "data/pictures/preparation.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

using Bytes = std::vector<std::uint8_t>;

/// A grey level everywhere.
Picture sheet(int width, int height, int paper);

/// Draws a digit on a picture: its box has its middle at (x, y) and is `size` pixels high.
void draw_digit(Picture& picture, int digit, double x, double y, double size, int ink, double pen_radius);

/// Blocks of ink on paper.
Picture drawn(int width, int height, std::initializer_list<Box> blocks, int ink = 255, int paper = 0);

/// A PNG as libpng's simplified interface writes it. format: PNG_FORMAT_GRAY, PNG_FORMAT_GA, ...
/// @param palette  red, green, blue and alpha of each colour; empty: none
Bytes encode_png(std::uint32_t width, std::uint32_t height, std::uint32_t format, const Bytes& pixels,
                 const Bytes& palette = {});
Bytes encode_png(const Picture& picture);
/// Grey with 16 bits and no word about gamma; or interlaced.
Bytes encode_png_16(const Picture& picture, bool interlaced = false);
Bytes encode_png_interlaced(const Picture& picture);
/// Black where the picture is black, and the less opaque the lighter it is.
Bytes encode_png_ink_only(const Picture& picture, int ink);
/// Two colours, the first of them transparent.
Bytes encode_png_palette(const Picture& picture);

struct JpegOptions {
  int quality = 85;
  bool progressive = false;
  int orientation = 0;  ///< an EXIF block that says so
  bool four_inks = false;
  bool in_scans = false;  ///< in colour, a scan for each component
};
Bytes encode_jpeg(const Picture& picture, const JpegOptions& options = {});

/// Neither a crash nor another error than DataError, wherever a picture is cut, and whatever bit of it is wrong.
void expect_errors_of_damage(const Bytes& file, PictureColour colour);

void write_bytes(const std::string& path, const Bytes& bytes);

}  // namespace lockstep::testing
