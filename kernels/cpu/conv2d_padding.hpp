// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images with their padding made real, for the weight gradient: its inner loop then never meets an edge.
#pragma once

#include "kernels/cpu/lanes_scratch.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <vector>

namespace lockstep::cpu {

/// [in_channels, height, width, batch]: x inside a frame of zeros, in which every tap of every output pixel
/// lies.
struct PaddedImage {
  const float* data = nullptr;
  std::size_t height = 0, width = 0;
};

/// x itself if the shape has no padding, else a copy in `scratch`.
PaddedImage pad_image(const Conv2dShape& shape, const float* x, Scratch& scratch);

/// Where tap (c, r, s) of output pixel (0, 0) lies in the image, in floats, in the order of the filter.
std::vector<std::size_t> tap_offsets(const Conv2dShape& shape, const PaddedImage& image);

}  // namespace lockstep::cpu
