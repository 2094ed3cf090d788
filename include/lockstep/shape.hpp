// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The shape of a sample, and of what a layer makes of it.
#pragma once

namespace lockstep {

/// One sample: [channels, height, width]. A plain feature vector is {features, 1, 1}. At most 2^24 numbers
/// (models/layer_options.hpp), checked when a network is built of it.
struct ImageShape {
  int channels = 0, height = 0, width = 0;

  constexpr int features() const { return channels * height * width; }
  friend constexpr bool operator==(const ImageShape&, const ImageShape&) = default;
};

}  // namespace lockstep
