// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// PGM: numbers in text, then the pixels.
#include "common/error.hpp"
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

}  // namespace

Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file) {
  PgmHeader header(name, file);
  const int width = header.number("width"), height = header.number("height"),
            largest = header.number("largest value");
  check_picture_size(name, width, height);
  if (largest > 65535)
    throw DataError(fmt::format("{}: PGM whose largest value is {}, above 65535", name, largest));
  const std::size_t bytes = largest > 255 ? 2 : 1;
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  const std::size_t begin = std::min(header.pixels(), file.size()), there = file.size() - begin;
  if (there < size * bytes) {
    throw DataError(
        fmt::format("{}: truncated PGM: {} bytes of pixels promised, {} there", name, size * bytes, there));
  }
  Picture picture{.name = name, .width = width, .height = height};
  picture.pixels.reserve(size);
  for (std::size_t i = begin; i < begin + size * bytes; i += bytes) {
    const int value = bytes == 2 ? file[i] << 8 | file[i + 1] : file[i];
    picture.pixels.push_back(static_cast<std::uint8_t>(std::min(255, (value * 255 + largest / 2) / largest)));
  }
  return picture;
}

}  // namespace lockstep
