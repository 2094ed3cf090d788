// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a camera was held: EXIF is read as far as the one entry that matters, and the picture turned.
#include "data/pictures/picture.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace lockstep {

namespace {

/// Numbers of a TIFF block in its byte order; reading past the end gives 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), big_endian_(bytes.size() > 1 && bytes[0] == 'M') {}

  std::uint32_t u16(std::size_t at) const {
    if (at + 2 > bytes_.size()) return 0;
    return big_endian_ ? bytes_[at] << 8U | bytes_[at + 1] : bytes_[at + 1] << 8U | bytes_[at];
  }
  std::uint32_t u32(std::size_t at) const {
    const std::uint32_t first = u16(at), second = u16(at + 2);
    return big_endian_ ? first << 16U | second : second << 16U | first;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> marker) {
  constexpr std::size_t kPrefix = 6, kEntryBytes = 12;
  constexpr std::uint32_t kOrientationTag = 0x0112;
  if (marker.size() < kPrefix || std::memcmp(marker.data(), "Exif\0\0", kPrefix) != 0) return 1;
  const Tiff tiff(marker.subspan(kPrefix));
  const std::size_t directory = tiff.u32(4);
  const std::uint32_t entries = tiff.u16(directory);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = tiff.u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Picture upright(const Picture& picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool swaps = orientation >= 5;
  // Where the picture's first row and first column are seen: 2 right, 3 bottom right, 4 bottom, and so on.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture seen = picture;
  if (swaps) std::swap(seen.width, seen.height);
  std::size_t at = 0;
  for (std::size_t plane = 0; plane < picture.pixels.size(); plane += picture.plane_size()) {
    for (int y = 0; y < seen.height; ++y) {
      for (int x = 0; x < seen.width; ++x) {
        int row = swaps ? x : y, column = swaps ? y : x;
        if (from_bottom) row = picture.height - 1 - row;
        if (from_right) column = picture.width - 1 - column;
        seen.pixels[at++] =
            picture.pixels[plane + static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.width) +
                           static_cast<std::size_t>(column)];
      }
    }
  }
  return seen;
}

}  // namespace lockstep
