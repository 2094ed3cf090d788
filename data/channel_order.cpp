// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rearranges image by image, there and back.
#include "data/channel_order.hpp"

#include <algorithm>
#include <vector>

namespace lockstep {

void separate_channels(std::span<std::uint8_t> images, std::size_t pixels, int channels) {
  const auto count = static_cast<std::size_t>(channels);
  if (count <= 1) return;
  std::vector<std::uint8_t> image(pixels * count);
  for (std::size_t at = 0; at < images.size(); at += image.size()) {
    std::copy_n(images.data() + at, image.size(), image.data());
    std::uint8_t* out = images.data() + at;
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t p = 0; p < pixels; ++p) *out++ = image[p * count + c];
    }
  }
}

void interleave_channels(std::span<const std::uint8_t> from, std::size_t pixels, int channels,
                         std::span<std::uint8_t> to) {
  const auto count = static_cast<std::size_t>(channels);
  std::size_t at = 0;
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < count; ++c) to[at++] = from[c * pixels + p];
  }
}

}  // namespace lockstep
