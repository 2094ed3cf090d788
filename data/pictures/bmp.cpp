// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// BMP, as Windows and OS/2 write it: a header, a palette or bit fields, and rows from the bottom to the top.
#include "common/error.hpp"
#include "data/pictures/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

namespace lockstep {
namespace {

using Pixels = std::vector<std::uint8_t>;

enum Packing : std::uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kFields = 3, kFieldsWithAlpha = 6 };

/// Which bits of a pixel are red, green, blue and alpha.
using Masks = std::array<std::uint32_t, 4>;

/// The bits under a mask, scaled to 0 to 255.
std::uint8_t field(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int low = std::countr_zero(mask);
  const std::uint64_t value = (pixel & mask) >> low, largest = mask >> low;
  return static_cast<std::uint8_t>((value * 255 + largest / 2) / largest);
}

class BmpReader {
 public:
  BmpReader(const std::string& name, std::span<const std::uint8_t> file) : name_(name), file_(file) {}

  Picture read(PictureColour colour) {
    read_header();
    rgba_.assign(4 * static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), 0);
    if (packing_ == kRuns8 || packing_ == kRuns4) {
      read_runs();
    } else {
      for (int y = 0; y < height_; ++y) read_row(y);
    }
    // Programs that know no transparency leave its bytes 0.
    bool any = false;
    for (std::size_t i = 3; i < rgba_.size(); i += 4) any = any || rgba_[i] != 0;
    for (std::size_t i = 3; i < rgba_.size() && !any; i += 4) rgba_[i] = 255;
    Picture picture{.name = name_, .width = width_, .height = height_, .channels = 3};
    lay_on_paper(picture, std::move(rgba_));
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
    std::uint32_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8U | file_[at + i];
    return value;
  }

  void read_header() {
    constexpr std::size_t kHeader = 14;
    const std::uint32_t size = number(kHeader, 4);
    const bool is_old = size == 12;  // OS/2 1
    if (!is_old && (size < 16 || size > 256)) fail(fmt::format("its header claims {} bytes", size));
    begin_ = number(10, 4);
    const auto stored_height = static_cast<std::int32_t>(is_old ? number(20, 2) : number(22, 4));
    const std::int64_t width = static_cast<std::int32_t>(is_old ? number(18, 2) : number(18, 4));
    bits_ = static_cast<int>(number(is_old ? 24 : 28, 2));
    packing_ = size >= 20 ? number(30, 4) : std::uint32_t{kPlain};
    from_top_ = stored_height < 0;
    check_packed_size(name_, width, std::abs(std::int64_t{stored_height}), file_.size());
    width_ = static_cast<int>(width);
    height_ = std::abs(stored_height);
    check_packing();
    if (bits_ <= 8) {
      read_palette(kHeader + size, is_old ? 3 : 4, size >= 36 ? number(46, 4) : 0);
    } else {
      read_masks(size);
    }
  }

  void check_packing() const {
    const bool known =
        (packing_ == kPlain &&
         (bits_ == 1 || bits_ == 4 || bits_ == 8 || bits_ == 16 || bits_ == 24 || bits_ == 32)) ||
        (packing_ == kRuns8 && bits_ == 8) || (packing_ == kRuns4 && bits_ == 4) ||
        ((packing_ == kFields || packing_ == kFieldsWithAlpha) && (bits_ == 16 || bits_ == 32));
    if (!known)
      throw DataError(
          fmt::format("{}: BMP with {} bits a pixel, packed in way {}, which is not read; save it as PNG",
                      name_, bits_, packing_));
  }

  void read_palette(std::size_t at, std::size_t entry_bytes, std::uint32_t told) {
    const std::uint32_t most = 1U << static_cast<unsigned>(bits_);
    palette_.resize(told == 0 || told > most ? most : told);
    for (auto& colour : palette_) {
      if (at + entry_bytes > begin_) {  // a shorter one is common: what it lacks is black
        at = begin_;
        break;
      }
      colour = number(at, 3);
      at += entry_bytes;
    }
  }

  void read_masks(std::uint32_t header_bytes) {
    if (packing_ == kPlain) {
      masks_ = bits_ == 16 ? Masks{0x7c00, 0x3e0, 0x1f, 0} : Masks{0xff0000, 0xff00, 0xff, 0};
      return;
    }
    const bool has_alpha = packing_ == kFieldsWithAlpha || header_bytes >= 56;
    for (std::size_t i = 0; i < (has_alpha ? 4U : 3U); ++i) masks_[i] = number(54 + 4 * i, 4);
  }

  std::uint8_t* pixel(int x, int y) {  // y from the first row of the file on
    const int row = from_top_ ? y : height_ - 1 - y;
    return rgba_.data() + 4 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                               static_cast<std::size_t>(x));
  }

  void put(int x, int y, std::uint32_t value) {
    std::uint8_t* to = pixel(x, y);
    if (bits_ <= 8) {
      if (value >= palette_.size()) fail(fmt::format("a pixel has colour {} of {}", value, palette_.size()));
      const std::uint32_t colour = palette_[value];
      for (const unsigned shift : {16U, 8U, 0U}) *to++ = static_cast<std::uint8_t>(colour >> shift);
      *to = 255;
    } else {
      for (std::size_t c = 0; c < 3; ++c) *to++ = field(value, masks_[c]);
      *to = masks_[3] == 0 ? 255 : field(value, masks_[3]);
    }
  }

  void read_row(int y) {
    const std::size_t row_bytes =
        (static_cast<std::size_t>(width_) * static_cast<std::size_t>(bits_) + 31) / 32 * 4;
    const std::size_t at = begin_ + static_cast<std::size_t>(y) * row_bytes;
    const auto bits = static_cast<std::size_t>(bits_);
    for (int x = 0; x < width_; ++x) {
      const std::size_t bit = static_cast<std::size_t>(x) * bits;
      if (bits_ >= 8) {
        put(x, y, number(at + bit / 8, bits / 8));
      } else {
        put(x, y, number(at + bit / 8, 1) >> (8 - bits - bit % 8) & ((1U << bits) - 1));
      }
    }
  }

  /// Pairs of bytes: a count and a colour (with 4 bits, two that take turns); or 0 and 0: end of row, 1: end, 2: go on
  /// elsewhere, others: so many pixels as they are, padded to 2 bytes. What is left out keeps colour 0.
  void read_runs() {
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) put(x, y, 0);
    for (std::size_t at = begin_;;) {
      const std::uint32_t count = number(at, 1), what = number(at + 1, 1);
      at += 2;
      if (count > 0) {
        for (std::uint32_t i = 0; i < count; ++i) put_next(colour_of(what, i));
      } else if (what == 0) {
        move(-x_, 1);
      } else if (what == 1) {
        return;
      } else if (what == 2) {
        move(static_cast<int>(number(at, 1)), static_cast<int>(number(at + 1, 1)));
        at += 2;
      } else {
        const std::uint32_t bytes = bits_ == 8 ? what : (what + 1) / 2;
        for (std::uint32_t i = 0; i < what; ++i)
          put_next(colour_of(number(at + (bits_ == 8 ? i : i / 2), 1), i));
        at += (bytes + 1) / 2 * 2;
      }
    }
  }

  std::uint32_t colour_of(std::uint32_t byte, std::uint32_t i) const {
    if (bits_ == 8) return byte;
    return i % 2 == 0 ? byte >> 4U : byte & 15U;
  }

  void move(int across, int up) {
    x_ = std::min(x_ + across, width_);
    y_ = std::min(y_ + up, height_);
  }

  void put_next(std::uint32_t colour) {
    if (y_ >= height_) fail("it has more rows than it says");
    if (x_ < width_) put(x_++, y_, colour);
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  std::size_t begin_ = 0;  ///< of the pixels
  int width_ = 0, height_ = 0, bits_ = 0;
  std::uint32_t packing_ = kPlain;
  bool from_top_ = false;
  int x_ = 0, y_ = 0;  ///< where the next pixel of run lengths goes; rows count from the bottom
  std::vector<std::uint32_t> palette_;  ///< red, green, blue
  Masks masks_{};
  Pixels rgba_;
};

}  // namespace

Picture read_bmp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  return BmpReader(name, file).read(colour);
}

}  // namespace lockstep
