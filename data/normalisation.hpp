// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How bytes become the numbers that a network sees: (byte / 255 - mean) / std, in each channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// One number for all channels, or one for each; empty: not known, or to be measured.
struct Normalisation {
  std::vector<double> mean, std;
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// What a kernel needs for it: value = byte * scale[c] + shift[c].
struct ChannelScales {
  std::vector<float> scale, shift;  ///< [channels]
};

/// @param by  mean and std have one number or `channels` of them; std is above 0
ChannelScales scales_of(const Normalisation& by, int channels);

/// Mean and standard deviation of each channel, scaled to [0, 1], the same on every machine: the sums are
/// exact integers. A channel whose pixels are all equal has the deviation 1.
/// @param images  [sample][channels][features / channels], at most 2^31 bytes
Normalisation measure(std::span<const std::uint8_t> images, std::size_t features, int channels);

}  // namespace lockstep
