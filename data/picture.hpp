// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures that a person wants classified: PNG, PGM, or the images of an IDX file, as 8-bit grey.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Rows from top to bottom, 0 is black.
struct Picture {
  std::string name;  ///< the path; with "[i]" behind it for image i of an IDX file
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height][width]
};

/// Largest side and number of pixels that are read; larger ones are refused before memory is asked for.
inline constexpr int kMaxPictureSide = 16384;
inline constexpr std::int64_t kMaxPicturePixels = std::int64_t{64} << 20;

/// Reads a file by its contents, not its name. PNG of any kind is turned to grey on black where it is
/// transparent; PGM is binary (P5) with up to 8 bits; an IDX file of images gives all of them, or only the
/// one that "PATH[i]" names.
/// @throws MissingDataError, DataError naming the file and what is wrong with it
std::vector<Picture> read_pictures(const std::string& path);

/// The same from the bytes of a file; `name` is for messages, `only` picks one image of an IDX file.
std::vector<Picture> parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                                    std::optional<std::int64_t> only = {});

/// Scaled to width x height by averaging over areas: exact for the same size.
Picture resize(const Picture& picture, int width, int height);

/// 255 - pixel: for dark strokes on light paper, where the training images have light strokes on black.
void invert(Picture& picture);

/// Whether the border is mostly light, as on a scan of ink on paper.
bool has_light_background(const Picture& picture);

}  // namespace lockstep
