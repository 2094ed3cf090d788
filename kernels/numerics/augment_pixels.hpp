// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes each byte of an augmented image.
#pragma once

#include "kernels/numerics/augment.hpp"

#include <cstdint>

namespace lockstep {

namespace augment {

// Changes of a pixel.

// Factors are at most 9, so that products stay within 31 bits.

LOCKSTEP_HOST_DEVICE constexpr int to_byte(int value) {
  const int rounded = (value + kFactorOne / 2) >> kFactorBits;
  return rounded < 0 ? 0 : (rounded > 255 ? 255 : rounded);
}

LOCKSTEP_HOST_DEVICE constexpr int brighten(int value, std::int32_t factor) {
  return to_byte(value * factor);
}

/// Stretches about a middle grey: the image's mean would need another pass.
LOCKSTEP_HOST_DEVICE constexpr int stretch(int value, std::int32_t factor) {
  constexpr int kMiddle = 128;
  return to_byte(kMiddle * kFactorOne + (value - kMiddle) * factor);
}

/// How light a colour is: 0.299 red, 0.587 green, 0.114 blue.
LOCKSTEP_HOST_DEVICE constexpr int lightness(int red, int green, int blue) {
  return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
}

/// Away from the grey that is as light.
LOCKSTEP_HOST_DEVICE constexpr int saturate(int value, int grey, std::int32_t factor) {
  return to_byte(grey * kFactorOne + (value - grey) * factor);
}

/// Changes a pixel of the result, at x and y; it has `count` channels, one or all.
LOCKSTEP_HOST_DEVICE constexpr void change_pixel(const PixelChange& change, int x, int y, int count,
                                                 int* values) {
  const std::int32_t* n = change.numbers;
  if (change.kind == AugmentKind::kErase) {
    if (x < n[0] || x >= n[2] || y < n[1] || y >= n[3]) return;
    for (int c = 0; c < count; ++c) values[c] = 0;
    return;
  }
  for (int c = 0; c < count; ++c) values[c] = stretch(brighten(values[c], n[0]), n[1]);
  if (n[2] == kFactorOne || count != 3) return;
  const int grey = lightness(values[0], values[1], values[2]);
  for (int c = 0; c < count; ++c) values[c] = saturate(values[c], grey, n[2]);
}

// Pixels at places between pixels.

/// The four pixels around a place, and how much of the right and the lower ones it shows.
struct Taps {
  int column, row;            ///< the upper left one; -1 to width or height - 1, or far away
  std::int32_t right, lower;  ///< shares, in units of 1 / kTapOne
};

LOCKSTEP_HOST_DEVICE constexpr Taps taps_at(std::int64_t x, std::int64_t y) {
  constexpr int kBelow = kPlaceBits - kTapBits;
  return {static_cast<int>(x >> kPlaceBits), static_cast<int>(y >> kPlaceBits),
          static_cast<std::int32_t>((x >> kBelow) & (kTapOne - 1)),
          static_cast<std::int32_t>((y >> kBelow) & (kTapOne - 1))};
}

LOCKSTEP_HOST_DEVICE constexpr int blend(const Taps& taps, int upper_left, int upper_right, int lower_left,
                                         int lower_right) {
  const std::int32_t upper = upper_left * (kTapOne - taps.right) + upper_right * taps.right;
  const std::int32_t lower = lower_left * (kTapOne - taps.right) + lower_right * taps.right;
  return (upper * (kTapOne - taps.lower) + lower * taps.lower + kTapOne * kTapOne / 2) >> (2 * kTapBits);
}

/// The value of one channel. Outside of the image all is black.
LOCKSTEP_HOST_DEVICE constexpr int pixel_at(const AugmentPlan& plan, const std::uint8_t* channel,
                                            const Taps& taps) {
  if (taps.column < -1 || taps.column >= plan.width || taps.row < -1 || taps.row >= plan.height) return 0;
  const auto at = [&](int column, int row) -> int {
    if (column < 0 || column >= plan.width || row < 0 || row >= plan.height) return 0;
    return channel[std::int64_t{row} * plan.width + column];
  };
  return blend(taps, at(taps.column, taps.row), at(taps.column + 1, taps.row), at(taps.column, taps.row + 1),
               at(taps.column + 1, taps.row + 1));
}

}  // namespace augment

/// Byte `feature` of the result, counted as [channel][row][column].
LOCKSTEP_HOST_DEVICE constexpr std::uint8_t augmented_byte(const AugmentPlan& plan,
                                                           const SampleAugment& sample,
                                                           const std::uint8_t* image, int feature) {
  const auto plane = static_cast<int>(plan.plane());
  const int channel = feature / plane, y = feature % plane / plan.width, x = feature % plan.width;
  const AugmentMap& map = sample.map;
  const augment::Taps taps = augment::taps_at(std::int64_t{map.xx} * x + std::int64_t{map.xy} * y + map.x0,
                                              std::int64_t{map.yx} * x + std::int64_t{map.yy} * y + map.y0);
  const bool mixes = plan.mixes_channels != 0;  // if so, there are three
  const int first = mixes ? 0 : channel, count = mixes ? 3 : 1;
  int values[3] = {};
  for (int c = 0; c < count; ++c)
    values[c] = augment::pixel_at(plan, image + std::int64_t{first + c} * plane, taps);
  for (int i = 0; i < sample.count; ++i) augment::change_pixel(sample.changes[i], x, y, count, values);
  return static_cast<std::uint8_t>(values[channel - first]);
}

}  // namespace lockstep
