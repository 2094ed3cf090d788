// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts beside the pixels of files. Orientation of the camera is followed; the screen for which the values are is
/// not.
#include "data/byte_source.hpp"
#include "data/pictures/picture.hpp"

#include <zlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace lockstep {

// How a camera was held: EXIF is read as far as the one entry that matters, and the picture turned.

namespace {

/// Numbers of a TIFF block in its byte order; reading past the end gives 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), big_endian_(bytes.size() > 1 && bytes[0] == 'M') {}

  std::uint32_t number(std::size_t at, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count && at + count <= bytes_.size(); ++i)
      value = value << 8U | bytes_[big_endian_ ? at + i : at + count - 1 - i];
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

int orientation_in_tiff(std::span<const std::uint8_t> block) {
  constexpr std::size_t kEntryBytes = 12;
  constexpr std::uint32_t kOrientationTag = 0x0112;
  const Tiff tiff(block);
  const std::size_t directory = tiff.number(4, 4);
  const std::uint32_t entries = tiff.number(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    const std::uint32_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

constexpr std::string_view kExifPrefix("Exif\0\0", 6);

/// Reads a chunk, which is a TIFF block. Some programs put the prefix of a JPEG's marker before it.
int orientation_in_chunk(std::span<const std::uint8_t> chunk) {
  if (as_text(chunk).starts_with(kExifPrefix)) chunk = chunk.subspan(kExifPrefix.size());
  const bool is_tiff = as_text(chunk).starts_with({"II*\0", 4}) || as_text(chunk).starts_with({"MM\0*", 4});
  return is_tiff ? orientation_in_tiff(chunk) : 1;
}

Picture turned(const Picture& picture, int orientation) {
  const bool swaps = orientation >= 5;
  // The sides at which the picture's first row and first column are seen. For example 2 right, 3 bottom right, 4
  // bottom, and so on.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture seen = picture;
  if (swaps) std::swap(seen.width, seen.height);
  std::size_t at = 0;
  for (std::size_t plane = 0; plane < picture.pixels.size(); plane += picture.plane_size())
    for (int y = 0; y < seen.height; ++y)
      for (int x = 0; x < seen.width; ++x) {
        int row = swaps ? x : y, column = swaps ? y : x;
        if (from_bottom) row = picture.height - 1 - row;
        if (from_right) column = picture.width - 1 - column;
        const std::int64_t place = std::int64_t{row} * picture.width + column;
        seen.pixels[at++] = picture.pixels[plane + static_cast<std::size_t>(place)];
      }
  return seen;
}

}  // namespace

int exif_orientation(std::span<const std::uint8_t> marker) {
  return as_text(marker).starts_with(kExifPrefix) ? orientation_in_tiff(marker.subspan(kExifPrefix.size()))
                                                  : 1;
}

void turn_upright(Picture& picture, int orientation) {
  if (orientation == 1) return;
  picture = turned(picture, orientation);
  picture.notes.emplace_back("turned upright");
}

// The chunks of PNG and WEBP.

namespace {

constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n";

/// One after the other, as far as they lie in the file whole.
class PngChunks {
 public:
  explicit PngChunks(std::span<const std::uint8_t> file)
      : file_(file), next_(as_text(file).starts_with(kPngBegin) ? kPngBegin.size() : file.size()) {}

  bool next() {
    constexpr std::size_t kAround = 12;  // length, type and check sum
    begin_ = next_;
    if (file_.size() - begin_ < kAround) return false;
    const std::size_t length = number(begin_);
    if (file_.size() - begin_ - kAround < length) return false;
    next_ = begin_ + kAround + length;
    return true;
  }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return next_; }
  bool is(std::string_view type) const { return as_text(file_.subspan(begin_ + 4)).starts_with(type); }
  std::span<const std::uint8_t> data() const { return file_.subspan(begin_ + 8, next_ - begin_ - 12); }
  bool has_its_check_sum() const {
    const auto size = static_cast<uInt>(next_ - begin_ - 8);
    return crc32(0, file_.data() + begin_ + 4, size) == number(next_ - 4);
  }

 private:
  std::uint32_t number(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | file_[at + i];
    return value;
  }

  std::span<const std::uint8_t> file_;
  std::size_t begin_ = 0, next_;
};

int orientation_of_png(std::span<const std::uint8_t> file) {
  for (PngChunks chunks(file); chunks.next();)
    if (chunks.is("eXIf") && chunks.has_its_check_sum()) return orientation_in_chunk(chunks.data());
  return 1;
}

/// EXIF data count where the head of the extended format says that there are some.
int orientation_of_webp(std::span<const std::uint8_t> file) {
  constexpr std::size_t kFirst = 12, kHead = 8;
  constexpr unsigned kHasExif = 8;
  if (file.size() < kFirst + kHead + 1 || !as_text(file.subspan(kFirst)).starts_with("VP8X") ||
      (file[kFirst + kHead] & kHasExif) == 0)
    return 1;
  for (std::size_t at = kFirst; file.size() - at >= kHead;) {
    const std::size_t there = file.size() - at - kHead, length = little_endian(file, at + 4, 4);
    if (length > there) return 1;
    if (as_text(file.subspan(at)).starts_with("EXIF"))
      return orientation_in_chunk(file.subspan(at + kHead, length));
    at += kHead + std::min(there, length + length % 2);
  }
  return 1;
}

}  // namespace

int stored_orientation(std::span<const std::uint8_t> file) {
  return as_text(file).starts_with(kPngBegin) ? orientation_of_png(file)
         : as_text(file).starts_with("RIFF")  ? orientation_of_webp(file)
                                              : 1;
}

std::vector<std::uint8_t> without_gamma(std::span<const std::uint8_t> png) {
  std::vector<std::uint8_t> rest;
  std::size_t kept_from = 0;
  const auto keep = [&](std::size_t end) {
    const auto part = png.subspan(kept_from, end - kept_from);
    rest.insert(rest.end(), part.begin(), part.end());
  };
  for (PngChunks chunks(png); chunks.next();) {
    if (!chunks.is("gAMA") && !chunks.is("cICP")) continue;
    keep(chunks.begin());
    kept_from = chunks.end();
  }
  if (kept_from > 0) keep(png.size());
  return rest;
}

}  // namespace lockstep
