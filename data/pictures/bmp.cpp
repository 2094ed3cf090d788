// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// BMP of 8, 24 or 32 bits a pixel, not packed. It has a header, a palette for 8, and rows from the bottom to the
/// top.
#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/pictures/picture.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace lockstep {
namespace {

class BmpReader {
 public:
  BmpReader(const std::string& name, std::span<const std::uint8_t> file) : name_(name), file_(file) {}

  Picture read(PictureColour colour) {
    read_header();
    Picture picture{.name = name_, .width = width_, .height = height_, .channels = 3};
    const std::size_t size = picture.plane_size(), width = static_cast<std::size_t>(width_);
    const std::size_t pixel_bytes = bits_ / 8, row_bytes = (width * pixel_bytes + 3) / 4 * 4;
    picture.pixels.resize(3 * size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t row = i / width, y = from_top_ ? row : static_cast<std::size_t>(height_) - 1 - row;
      const std::uint32_t shown =
          colour_of(number(begin_ + row * row_bytes + i % width * pixel_bytes, pixel_bytes));
      for (std::size_t c = 0; c < 3; ++c)
        picture.pixels[c * size + y * width + i % width] = static_cast<std::uint8_t>(shown >> (16 - 8 * c));
    }
    recolour(picture, colour);
    return picture;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw DataError(fmt::format("{}: damaged BMP: {}", name_, why));
  }

  /// A little-endian number.
  std::uint32_t number(std::size_t at, std::size_t bytes) const {
    if (at + bytes > file_.size()) fail(fmt::format("it ends at byte {}", file_.size()));
    return static_cast<std::uint32_t>(little_endian(file_, at, bytes));
  }

  void read_header() {
    constexpr std::size_t kHeader = 14;
    const std::uint32_t size = number(kHeader, 4);
    const bool is_old = size == 12;  // OS/2 1
    if (!is_old && (size < 16 || size > 256)) fail(fmt::format("its header claims {} bytes", size));
    begin_ = number(10, 4);
    const auto stored_height = static_cast<std::int32_t>(is_old ? number(20, 2) : number(22, 4));
    const std::int64_t width = static_cast<std::int32_t>(is_old ? number(18, 2) : number(18, 4));
    bits_ = number(is_old ? 24 : 28, 2);
    const std::uint32_t packing = size >= 20 ? number(30, 4) : 0;
    if (packing != 0 || (bits_ != 8 && bits_ != 24 && bits_ != 32))
      throw DataError(
          fmt::format("{}: BMP with {} bits a pixel, packed in way {}; only 8, 24 and 32 bits that are "
                      "not packed are read: save it as PNG",
                      name_, bits_, packing));
    from_top_ = stored_height < 0;
    check_packed_size(name_, width, std::abs(std::int64_t{stored_height}), file_.size());
    width_ = static_cast<int>(width);
    height_ = std::abs(stored_height);
    if (bits_ == 8) read_palette(kHeader + size, is_old ? 3 : 4, size >= 36 ? number(46, 4) : 0);
  }

  void read_palette(std::size_t at, std::size_t entry_bytes, std::uint32_t told) {
    palette_.resize(told == 0 || told > 256 ? 256 : told);
    for (auto& colour : palette_) {
      if (at + entry_bytes > begin_) break;  // a shorter one is common: what it lacks is black
      colour = number(at, 3);
      at += entry_bytes;
    }
  }

  /// Red, green and blue, from bit 16 down.
  std::uint32_t colour_of(std::uint32_t pixel) const {
    if (bits_ != 8) return pixel;
    if (pixel >= palette_.size()) fail(fmt::format("a pixel has colour {} of {}", pixel, palette_.size()));
    return palette_[pixel];
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  std::size_t begin_ = 0;  ///< offset of the pixels
  int width_ = 0, height_ = 0;
  std::uint32_t bits_ = 0;
  bool from_top_ = false;
  std::vector<std::uint32_t> palette_;
};

}  // namespace

Picture read_bmp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  return BmpReader(name, file).read(colour);
}

}  // namespace lockstep
