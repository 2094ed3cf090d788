// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Padding for the weight gradient of a convolution.
#include "kernels/cpu/conv2d_padding.hpp"

#include <algorithm>

namespace lockstep::cpu {

PaddedImage pad_image(const Conv2dShape& s, const float* x, Scratch& scratch) {
  const std::size_t height = s.in_height + 2 * s.padding, width = s.in_width + 2 * s.padding;
  if (s.padding == 0) return {x, height, width};
  const std::size_t batch = s.batch, row = s.in_width * batch, side = s.padding * batch;
  float* const padded = scratch.floats(s.in_channels * height * width * batch);
  float* to = padded;
  for (std::size_t line = 0; line < s.in_channels * height; ++line) {
    const auto h = static_cast<int>(line % height) - s.padding;
    if (h < 0 || h >= s.in_height) {
      to = std::fill_n(to, width * batch, 0.0F);
      continue;
    }
    to = std::fill_n(to, side, 0.0F);
    to = std::copy_n(x, row, to);
    to = std::fill_n(to, side, 0.0F);
    x += row;
  }
  return {padded, height, width};
}

std::vector<std::size_t> tap_offsets(const Conv2dShape& s, const PaddedImage& image) {
  std::vector<std::size_t> offsets;
  offsets.reserve(s.in_channels * s.kernel_height * s.kernel_width);
  for (int c = 0; c < s.in_channels; ++c) {
    for (int r = 0; r < s.kernel_height; ++r) {
      const std::size_t row = (c * image.height + r) * image.width;
      for (int q = 0; q < s.kernel_width; ++q) offsets.push_back((row + q) * s.batch);
    }
  }
  return offsets;
}

}  // namespace lockstep::cpu
