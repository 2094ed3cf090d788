// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The picture formats that data/picture.hpp reads, one function and one file each.
#pragma once

#include "data/picture.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// @throws DataError  a picture that is empty or larger than kMaxPictureSide and kMaxPicturePixels allow
void check_picture_size(const std::string& name, std::int64_t width, std::int64_t height);

/// All of them turn a whole file into grey, 0 is black, or into red, green and blue; `name` is for messages.
/// @throws DataError  naming the file and what is wrong with it
///
/// Every kind of PNG: grey, colour, palette, with alpha, 16 bits, interlaced. What is transparent is laid on
/// white; on black if nothing could be seen on white.
Picture read_png(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);
/// Baseline and progressive JPEG, grey, colour and CMYK, turned upright as its EXIF data say.
Picture read_jpeg(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);
/// Binary PGM (P5) or PPM (P6) with 8 or 16 bits.
Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);

/// How light a colour is, as television has it. Each from 0 to 255.
inline int grey_of(int red, int green, int blue) {
  return (299 * red + 587 * green + 114 * blue) / 1000;
}

}  // namespace lockstep
