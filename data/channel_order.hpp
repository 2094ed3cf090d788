// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures are stored pixel by pixel, kernels want channel by channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// Each image from [pixel][channel] to [channel][pixel], in place. Nothing to do for one channel.
/// @param images  [sample][pixels * channels]
void separate_channels(std::span<std::uint8_t> images, std::size_t pixels, int channels);

/// The way back, for one image. @param from, to  of the same size, apart
void interleave_channels(std::span<const std::uint8_t> from, std::size_t pixels, int channels,
                         std::span<std::uint8_t> to);

}  // namespace lockstep
