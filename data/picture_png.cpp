// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// PNG by libpng's simplified interface.
#include "common/error.hpp"
#include "data/picture_formats.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>

namespace lockstep {
namespace {

/// Frees what libpng holds, whatever happens.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

using Pixels = std::vector<std::uint8_t>;

/// Pixels as libpng delivers them.
struct WithAlpha {
  Pixels bytes;          ///< [pixel][channels + 1], alpha last
  std::size_t channels;  ///< 1 or 3

  std::size_t pixels() const { return bytes.size() / (channels + 1); }
  int alpha(std::size_t pixel) const { return bytes[pixel * (channels + 1) + channels]; }
  int value(std::size_t pixel, std::size_t channel) const { return bytes[pixel * (channels + 1) + channel]; }
};

/// [channels][pixel]
Pixels laid_on(const WithAlpha& picture, int paper) {
  Pixels opaque;
  opaque.reserve(picture.channels * picture.pixels());
  for (std::size_t c = 0; c < picture.channels; ++c) {
    for (std::size_t i = 0; i < picture.pixels(); ++i) {
      const int value = picture.value(i, c), alpha = picture.alpha(i);
      opaque.push_back(static_cast<std::uint8_t>((value * alpha + paper * (255 - alpha) + 127) / 255));
    }
  }
  return opaque;
}

int contrast(const Pixels& pixels) {
  const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
  return *high - *low;
}

bool is_opaque(const WithAlpha& picture) {
  for (std::size_t i = 0; i < picture.pixels(); ++i) {
    if (picture.alpha(i) != 255) return false;
  }
  return true;
}

/// Dark strokes on nothing are what drawing programs save; light ones on nothing would vanish on white.
void flatten(const WithAlpha& source, Picture& picture) {
  constexpr int kInvisible = 16, kWhitePixel = 255, kBlackPixel = 0;
  picture.pixels = laid_on(source, kWhitePixel);
  if (is_opaque(source)) return;
  picture.notes.emplace_back("transparent: laid on white");
  if (contrast(picture.pixels) >= kInvisible) return;
  Pixels on_black = laid_on(source, kBlackPixel);
  if (contrast(on_black) < kInvisible) return;
  picture.pixels = std::move(on_black);
  picture.notes.back() = "transparent and light: laid on black";
}

}  // namespace

Picture read_png(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  PngImage image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  check_picture_size(name, image.width, image.height);
  image.format = colour == PictureColour::kRgb ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
  image.flags |=
      PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are as the screen shows them, too, unless the file says
  Picture picture{.name = name,
                  .width = static_cast<int>(image.width),
                  .height = static_cast<int>(image.height),
                  .channels = channels_of(colour)};
  WithAlpha source{Pixels(PNG_IMAGE_SIZE(image)), static_cast<std::size_t>(picture.channels)};
  if (png_image_finish_read(&image, nullptr, source.bytes.data(), 0, nullptr) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  flatten(source, picture);
  return picture;
}

}  // namespace lockstep
