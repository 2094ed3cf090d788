// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Formats of pictures that libraries decode, PNG and WEBP; and PGM and PPM by hand.
#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/pictures/picture.hpp"

#include <fmt/format.h>
#include <png.h>
#include <webp/decode.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep {

// PNG by libpng's simplified interface.

namespace {

/// Frees what libpng holds, in any case.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

using Pixels = std::vector<std::uint8_t>;

}  // namespace

Picture read_png(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  const Pixels stored = without_gamma(file);
  PngImage image;
  const auto read = stored.empty() ? file : std::span<const std::uint8_t>(stored);
  if (png_image_begin_read_from_memory(&image, read.data(), read.size()) == 0)
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  check_picture_size(name, image.width, image.height);
  const bool coloured = (image.format & PNG_FORMAT_FLAG_COLOR) != 0,
             has_16_bits = (image.format & PNG_FORMAT_FLAG_LINEAR) != 0;
  constexpr std::size_t kInterlaceMethod = 28;  // its byte in the first chunk, which was read
  if (has_16_bits && read[kInterlaceMethod] != 0)
    throw DataError(fmt::format(
        "{}: interlaced PNG with 16 bits a channel, whose pixels libpng mixes up; save it without "
        "interlacing, or with 8 bits",
        name));
  image.format = coloured ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;  // libpng's grey is another than other formats'
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;                   // 16 bits are as the screen shows them, too
  Picture picture{.name = name,
                  .width = static_cast<int>(image.width),
                  .height = static_cast<int>(image.height),
                  .channels = coloured ? 3 : 1,
                  .was_coloured = coloured,
                  .had_16_bits = has_16_bits};
  Pixels pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0)
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  lay_on_paper(picture, std::move(pixels));
  recolour(picture, colour);
  turn_upright(picture, stored_orientation(file));
  return picture;
}

Pixels write_png(const Picture& picture) {
  LOCKSTEP_CHECK(picture.channels == 1 || picture.channels == 3);
  Pixels interleaved(picture.pixels.size());
  interleave_channels(picture.pixels, picture.plane_size(), picture.channels, interleaved);
  PngImage image;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  Pixels file(size);
  if (png_image_write_to_memory(&image, file.data(), &size, 0, interleaved.data(), 0, nullptr) == 0)
    throw InternalError(fmt::format("{}: no PNG can be made of it: {}", picture.name, image.message));
  file.resize(size);
  return file;
}

// PGM and PPM: numbers in text, then the pixels.

namespace {

/// Reads the header of a PGM: numbers between white space and comments.
class PgmHeader {
 public:
  PgmHeader(const std::string& name, std::string_view file) : name_(name), file_(file) {}

  int number(const char* what) {
    skip_space();
    const char* begin = file_.data() + at_;
    int value = 0;
    const auto [end, error] = std::from_chars(begin, file_.data() + file_.size(), value);
    if (error != std::errc() || value < 1)
      throw DataError(
          fmt::format("{}: PGM header, offset {}: expected the {}, a positive number", name_, at_, what));
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  /// Offset of the pixels: one white space after the last number.
  std::size_t pixels() const { return at_ + 1; }

 private:
  void skip_space() {
    for (;;) {
      at_ = std::min(file_.find_first_not_of(" \t\r\n", at_), file_.size());
      if (at_ == file_.size() || file_[at_] != '#') return;
      at_ = std::min(file_.find('\n', at_), file_.size());
    }
  }

  const std::string& name_;
  std::string_view file_;
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

}  // namespace

Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  PgmHeader header(name, as_text(file));
  const int width = header.number("width"), height = header.number("height"),
            largest = header.number("largest value");
  check_picture_size(name, width, height);
  if (largest > 65535)
    throw DataError(fmt::format("{}: PGM whose largest value is {}, above 65535", name, largest));
  const int channels = file[1] == '6' ? 3 : 1;
  Picture picture{
      .name = name, .width = width, .height = height, .channels = channels, .had_16_bits = largest > 255};
  const std::size_t size =
      picture.plane_size() * static_cast<std::size_t>(channels) * (largest > 255 ? 2 : 1);
  const std::size_t begin = std::min(header.pixels(), file.size()), there = file.size() - begin;
  if (there < size)
    throw DataError(
        fmt::format("{}: truncated PGM: {} bytes of pixels promised, {} there", name, size, there));
  picture.pixels = read_values(file.subspan(begin, size), largest);
  separate_channels(std::span(picture.pixels), picture.plane_size(), channels);
  recolour(picture, colour);
  return picture;
}

// WEBP by libwebp, whose pixels its format defines to the last bit.

Picture read_webp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK)
    throw DataError(fmt::format("{}: damaged WEBP: its header cannot be read", name));
  if (features.has_animation != 0)
    throw DataError(fmt::format("{}: WEBP that moves; save one of its pictures by itself", name));
  check_packed_size(name, features.width, features.height, file.size());
  const std::size_t row_bytes = std::size_t{4} * static_cast<std::size_t>(features.width);
  Pixels rgba(row_bytes * static_cast<std::size_t>(features.height));
  if (WebPDecodeRGBAInto(file.data(), file.size(), rgba.data(), rgba.size(), static_cast<int>(row_bytes)) ==
      nullptr)
    throw DataError(fmt::format("{}: damaged WEBP: its pixels cannot be read", name));
  Picture picture{.name = name, .width = features.width, .height = features.height, .channels = 3};
  lay_on_paper(picture, std::move(rgba));
  recolour(picture, colour);
  turn_upright(picture, stored_orientation(file));
  return picture;
}

}  // namespace lockstep
