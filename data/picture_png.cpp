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

/// @param grey_alpha  two bytes a pixel
Pixels laid_on(const Pixels& grey_alpha, int paper) {
  Pixels grey(grey_alpha.size() / 2);
  for (std::size_t i = 0; i < grey.size(); ++i) {
    const int value = grey_alpha[2 * i], alpha = grey_alpha[2 * i + 1];
    grey[i] = static_cast<std::uint8_t>((value * alpha + paper * (255 - alpha) + 127) / 255);
  }
  return grey;
}

int contrast(const Pixels& grey) {
  const auto [low, high] = std::minmax_element(grey.begin(), grey.end());
  return *high - *low;
}

bool is_opaque(const Pixels& grey_alpha) {
  for (std::size_t i = 1; i < grey_alpha.size(); i += 2) {
    if (grey_alpha[i] != 255) return false;
  }
  return true;
}

/// Dark strokes on nothing are what drawing programs save; light ones on nothing would vanish on white.
void flatten(const Pixels& grey_alpha, Picture& picture) {
  constexpr int kInvisible = 16, kWhite = 255, kBlack = 0;
  picture.pixels = laid_on(grey_alpha, kWhite);
  if (is_opaque(grey_alpha)) return;
  picture.notes.emplace_back("transparent: laid on white");
  if (contrast(picture.pixels) >= kInvisible) return;
  Pixels on_black = laid_on(grey_alpha, kBlack);
  if (contrast(on_black) < kInvisible) return;
  picture.pixels = std::move(on_black);
  picture.notes.back() = "transparent and light: laid on black";
}

}  // namespace

Picture read_png(const std::string& name, std::span<const std::uint8_t> file) {
  PngImage image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  check_picture_size(name, image.width, image.height);
  image.format = PNG_FORMAT_GA;
  image.flags |=
      PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are as the screen shows them, too, unless the file says
  Picture picture{
      .name = name, .width = static_cast<int>(image.width), .height = static_cast<int>(image.height)};
  Pixels grey_alpha(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, grey_alpha.data(), 0, nullptr) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  flatten(grey_alpha, picture);
  return picture;
}

}  // namespace lockstep
