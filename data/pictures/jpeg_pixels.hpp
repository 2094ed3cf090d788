// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What becomes of a JPEG's coefficients: the same pixels on every machine, whatever library read the file.
///
/// All of it is integer arithmetic that is defined for any input, sums and products of 32 bits wrap around, so no
/// instruction set, compiler or version of libjpeg leaves a trace. The definitions are those of libjpeg's "islow" and
/// "fancy upsampling", which most programs show; libjpeg-turbo's pixels are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Coefficients of a block of 8 x 8 pixels, row after row (not in zigzag order), as the file quantised them.
using JpegBlock = std::int16_t[64];

/// One component of a picture in its own resolution.
struct JpegPlane {
  int width = 0, height = 0;  ///< of the pixels that count; what blocks have beyond them is not looked at
  int across = 1,
      down = 1;  ///< so many pixels of the picture stand beside, and above, each other for one of these
  std::size_t row_bytes = 0;  ///< whole blocks
  std::vector<std::uint8_t> pixels{};

  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * row_bytes; }
};

/// What the components are.
enum class JpegColours { kGrey, kRgb, kYcc, kCmyk, kYcck };

/// Dequantises a row of blocks and transforms each back. Coefficients times steps wrap at 16 bits; what is kept between
/// the passes saturates at 16 bits, which no encoder's output comes near.
/// Source: Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", ICASSP 1989,
/// figure 1, with constants of 13 bits; two more bits are kept between the passes.
/// @param steps  of quantisation, in the order of a block
/// @param out    8 rows of 8 x count pixels, `row_bytes` apart
void inverse_dct(const JpegBlock* blocks, std::size_t count, std::span<const std::uint16_t, 64> steps,
                 std::uint8_t* out, std::size_t row_bytes);

/// Brings the components to one resolution (halved ones by a triangle filter, others by repetition) and to grey, to
/// red, green and blue, or to the four inks as they are stored.
/// @param channels  1 or 3; with four components it does not matter
/// @returns [channels][height][width], with four components [4][height][width]
std::vector<std::uint8_t> jpeg_pixels(std::span<const JpegPlane> planes, JpegColours colours, int channels,
                                      int width, int height);

}  // namespace lockstep
