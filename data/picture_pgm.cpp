// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// PGM and PPM: numbers in text, then the pixels.
#include "common/error.hpp"
#include "data/channel_order.hpp"
#include "data/picture_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace lockstep {
namespace {

/// Reads the header of a PGM: numbers between white space and comments.
class PgmHeader {
 public:
  PgmHeader(const std::string& name, std::span<const std::uint8_t> file) : name_(name), file_(file) {}

  int number(const char* what) {
    skip_space();
    const auto* begin = reinterpret_cast<const char*>(file_.data()) + at_;
    int value = 0;
    const auto [end, error] = std::from_chars(begin, begin + (file_.size() - at_), value);
    if (error != std::errc() || value < 1) {
      throw DataError(
          fmt::format("{}: PGM header, offset {}: expected the {}, a positive number", name_, at_, what));
    }
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  /// Offset of the pixels: one white space after the last number.
  std::size_t pixels() const { return at_ + 1; }

 private:
  void skip_space() {
    while (at_ < file_.size()) {
      if (file_[at_] == '#') {
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      } else if (std::strchr(" \t\r\n", file_[at_]) != nullptr && file_[at_] != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  std::size_t at_ = 2;
};

/// The bytes of the pixels, from `begin` on, as they are stored; larger numbers than a byte holds are scaled.
std::vector<std::uint8_t> read_values(std::span<const std::uint8_t> stored, int largest) {
  const std::size_t bytes = largest > 255 ? 2 : 1;
  std::vector<std::uint8_t> values;
  values.reserve(stored.size() / bytes);
  for (std::size_t i = 0; i < stored.size(); i += bytes) {
    const int value = bytes == 2 ? stored[i] << 8 | stored[i + 1] : stored[i];
    values.push_back(static_cast<std::uint8_t>(std::min(255, (value * 255 + largest / 2) / largest)));
  }
  return values;
}

/// Planes of the colour that is wanted, from those that are stored.
void recolour(Picture& picture, PictureColour colour) {
  const std::size_t size = picture.plane_size();
  const int wanted = channels_of(colour);
  if (picture.channels == wanted) return;
  if (colour == PictureColour::kRgb) {
    picture.pixels.resize(3 * size);
    for (const std::size_t plane : {size, 2 * size})
      std::copy_n(picture.pixels.data(), size, picture.pixels.data() + plane);
  } else {
    for (std::size_t i = 0; i < size; ++i)
      picture.pixels[i] = static_cast<std::uint8_t>(
          grey_of(picture.pixels[i], picture.pixels[size + i], picture.pixels[2 * size + i]));
    picture.pixels.resize(size);
  }
  picture.channels = wanted;
}

}  // namespace

Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  PgmHeader header(name, file);
  const int width = header.number("width"), height = header.number("height"),
            largest = header.number("largest value");
  check_picture_size(name, width, height);
  if (largest > 65535)
    throw DataError(fmt::format("{}: PGM whose largest value is {}, above 65535", name, largest));
  const int channels = file[1] == '6' ? 3 : 1;
  Picture picture{.name = name, .width = width, .height = height, .channels = channels};
  const std::size_t size =
      picture.plane_size() * static_cast<std::size_t>(channels) * (largest > 255 ? 2 : 1);
  const std::size_t begin = std::min(header.pixels(), file.size()), there = file.size() - begin;
  if (there < size) {
    throw DataError(
        fmt::format("{}: truncated PGM: {} bytes of pixels promised, {} there", name, size, there));
  }
  picture.pixels = read_values(file.subspan(begin, size), largest);
  separate_channels(picture.pixels, picture.plane_size(), channels);
  recolour(picture, colour);
  return picture;
}

}  // namespace lockstep
