// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images as the weight gradient reads them: with their padding made real, so that its inner loop never meets an
/// edge, or without the pixels that a filter of 1x1 passes over.
#pragma once

#include "kernels/cpu/operands.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::cpu {

/// A filter of 1x1 with a stride reads some pixels of x; those alone are an image for one without a stride.
inline bool skips_pixels(const Conv2dShape& s) {
  return s.kernel_height == 1 && s.kernel_width == 1 && s.padding == 0 && s.stride > 1;
}
inline Conv2dShape without_skipped(Conv2dShape s) {
  const int height = s.out_height(), width = s.out_width();
  s.stride = 1, s.in_height = height, s.in_width = width;
  return s;
}
inline const float* copy_read_pixels(const Conv2dShape& s, const float* x, Scratch& scratch) {
  const std::size_t height = s.out_height(), width = s.out_width(), batch = s.batch;
  float* const read = scratch.floats(s.in_channels * height * width * batch);
  float* to = read;
  for (int c = 0; c < s.in_channels; ++c, x += std::size_t{1} * s.in_height * s.in_width * batch) {
    for (std::size_t pixel = 0; pixel < height * width; ++pixel) {
      const std::size_t row = pixel / width * s.stride, column = pixel % width * s.stride;
      to = std::copy_n(x + (row * s.in_width + column) * batch, batch, to);
    }
  }
  return read;
}

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
