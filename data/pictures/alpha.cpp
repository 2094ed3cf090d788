// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Transparent pictures laid on paper, and colours made grey.
#include "data/pictures/picture.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

using Pixels = std::vector<std::uint8_t>;

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

}  // namespace

/// Dark strokes on nothing are what drawing programs save; light ones on nothing would vanish on white.
void lay_on_paper(Picture& picture, Pixels with_alpha) {
  constexpr int kInvisible = 16, kWhitePixel = 255, kBlackPixel = 0;
  const WithAlpha source{std::move(with_alpha), static_cast<std::size_t>(picture.channels)};
  picture.pixels = laid_on(source, kWhitePixel);
  if (is_opaque(source)) return;
  picture.notes.emplace_back("transparent: laid on white");
  if (contrast(picture.pixels) >= kInvisible) return;
  Pixels on_black = laid_on(source, kBlackPixel);
  if (contrast(on_black) < kInvisible) return;
  picture.pixels = std::move(on_black);
  picture.notes.back() = "transparent and light: laid on black";
}

void recolour(Picture& picture, PictureColour colour) {
  const std::size_t size = picture.plane_size();
  const int wanted = channels_of(colour);
  if (picture.channels == wanted) return;
  if (colour == PictureColour::kRgb) {
    picture.pixels.resize(3 * size);
    for (const std::size_t plane : {size, 2 * size})
      std::copy_n(picture.pixels.data(), size, picture.pixels.data() + plane);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      const int red = picture.pixels[i], green = picture.pixels[size + i],
                blue = picture.pixels[2 * size + i];
      picture.was_coloured = picture.was_coloured || red != green || green != blue;
      picture.pixels[i] = static_cast<std::uint8_t>(grey_of(red, green, blue));
    }
    picture.pixels.resize(size);
  }
  picture.channels = wanted;
}

}  // namespace lockstep
