// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images with their padding made real, for the weight gradient: its inner loop then never meets an edge.
#pragma once

#include "kernels/cpu/operands.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::cpu {

/// x itself if the shape has no padding, else a copy in `scratch`: [in_channels, height, width, batch], inside a
/// frame of zeros, in which every tap of every output pixel lies.
inline const float* pad_image(const Conv2dShape& s, const float* x, Scratch& scratch) {
  if (s.padding == 0) return x;
  const std::size_t height = s.in_height + 2 * s.padding, width = s.in_width + 2 * s.padding;
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
  return padded;
}

/// Where tap (c, r, s) of output pixel (0, 0) lies in the image of pad_image(), in floats, in the order of the filter.
inline std::vector<std::size_t> tap_offsets(const Conv2dShape& s) {
  const std::size_t height = s.in_height + 2 * s.padding, width = s.in_width + 2 * s.padding;
  std::vector<std::size_t> offsets;
  offsets.reserve(s.in_channels * s.kernel_height * s.kernel_width);
  for (int c = 0; c < s.in_channels; ++c) {
    for (int r = 0; r < s.kernel_height; ++r) {
      const std::size_t row = (c * height + r * s.dilation) * width;
      for (int q = 0; q < s.kernel_width; ++q) offsets.push_back((row + q * s.dilation) * s.batch);
    }
  }
  return offsets;
}

}  // namespace lockstep::cpu
