// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes the numbers that a network sees of bytes: (byte / 255 - mean) / std, in each channel.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct Dataset;  // data/dataset.hpp

/// One number for all channels, or one for each; empty: not known, or to be measured.
struct Normalisation {
  std::vector<double> mean, std;
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// Scales for the kernel that normalises: value = byte * scale[c] + shift[c].
struct ChannelScales {
  std::vector<float> scale, shift;  ///< [channels]
};

/// @param by  mean and std have one number or `channels` of them; std is above 0
ChannelScales scales_of(const Normalisation& by, int channels);

/// Mean and standard deviation of each channel, scaled to [0, 1], the same on every machine. The sums are
/// exact integers. A channel whose pixels are all equal has the deviation 1. For images on disk the sums are known,
/// except for a chosen part: then the samples in it, or the others, are read. For fp32 features, which are not scaled
/// to [0, 1], the sums are doubles in the order of the samples.
Normalisation measure(const Dataset& set);

/// fp32 features become (value - mean) / std, in double and rounded once: the same bits on every machine.
/// @param features  [sample][channels][features / channels], changed in place
/// @param what      for the message, and the number of the first sample
/// @throws DataError  a result is beyond fp32
void normalise_features(std::span<float> features, const ImageShape& shape, const Normalisation& by,
                        const std::string& what, std::int64_t first_sample = 0);

/// The first feature of a sample for which normalise_features would throw; -1: none.
std::int64_t find_beyond_fp32(std::span<const float> sample, const ImageShape& shape,
                              const Normalisation& by);

}  // namespace lockstep
