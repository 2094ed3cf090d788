// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Augmentation of training images: its plan, and all that was drawn for a sample. kernels/numerics/augment_draws.hpp draws
/// it, and kernels/numerics/augment_pixels.hpp makes each byte of the result.
///
/// All of it is arithmetic on integers, written once for host and GPU, so that both get the same bytes. Numbers with
/// a point are in fixed point: "Q24" counts in units of 2^-24. Right shifts round down. docs/arithmetic.md has the
/// rules in words.
#pragma once

#include "kernels/numerics/random.hpp"

#include <cstdint>

namespace lockstep {

inline constexpr int kMostAugmentations = 16;
inline constexpr int kAugmentNumbers = 6;
/// Sides of images: positions in Q24, with all that a map may add, stay within 63 bits.
inline constexpr int kMostAugmentedSide = 16384;

/// The first ones move pixels; those from kJitter on change what is there; the last two mix images
/// (kernels/mix.hpp).
enum class AugmentKind : std::int32_t {
  kCrop,
  kResizedCrop,
  kFlip,
  kRotate,
  kShift,
  kScale,
  kJitter,
  kErase,
  kCutout,
  kMixup,
  kCutmix
};

LOCKSTEP_HOST_DEVICE constexpr bool moves_pixels(AugmentKind kind) {
  return kind < AugmentKind::kJitter;
}
LOCKSTEP_HOST_DEVICE constexpr bool mixes_images(AugmentKind kind) {
  return kind >= AugmentKind::kMixup;
}

/// An entry of the list. The function that draws for it says what its numbers mean, and their unit.
struct AugmentStep {
  AugmentKind kind = AugmentKind::kCrop;
  std::int32_t numbers[kAugmentNumbers] = {};
};

/// The list without what mixes images, for images of one shape.
struct AugmentPlan {
  std::uint64_t seed = 0;
  std::int32_t channels = 0, height = 0, width = 0;
  std::int32_t count = 0;
  std::int32_t mixes_channels = 0;  ///< 1: some step needs all channels of a pixel at once
  AugmentStep steps[kMostAugmentations];

  LOCKSTEP_HOST_DEVICE constexpr std::int64_t plane() const { return std::int64_t{1} * height * width; }
};

/// Maps a pixel of the result to the place in the image that it shows. x' = xx x + xy y + x0, y' alike, all in
/// Q24.
/// Without constructors, as GPU code needs it in shared memory.
struct AugmentMap {
  std::int32_t xx, xy, yx, yy;
  std::int64_t x0, y0;
};

/// A change to the pixels of a sample, after the map.
struct PixelChange {
  AugmentKind kind;         ///< kJitter: factors in Q16 of brightness, contrast, saturation
  std::int32_t numbers[4];  ///< kErase: left, top, right, bottom, the last two excluded
};

/// All that was drawn for a sample in an epoch.
struct SampleAugment {
  AugmentMap map;
  std::int32_t count;
  PixelChange changes[kMostAugmentations];
};

namespace augment {

inline constexpr int kPlaceBits = 24, kFactorBits = 16, kChanceBits = 30;
inline constexpr std::int32_t kPlaceOne = 1 << kPlaceBits;
inline constexpr std::int32_t kFactorOne = 1 << kFactorBits;
inline constexpr std::int32_t kQuarterTurn = 1 << 28;  ///< angles count in 2^-30 turns
inline constexpr int kTapBits = 11;                    ///< bits of a weight between two pixels
inline constexpr std::int32_t kTapOne = 1 << kTapBits;

// Numbers.

LOCKSTEP_HOST_DEVICE constexpr std::int64_t shift_rounded(std::int64_t value, int bits) {
  return (value + (std::int64_t{1} << (bits - 1))) >> bits;
}

LOCKSTEP_HOST_DEVICE constexpr std::int64_t within(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low ? low : (value > high ? high : value);
}

/// A coefficient of a map: below 64 in size.
LOCKSTEP_HOST_DEVICE constexpr std::int32_t coefficient(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  return static_cast<std::int32_t>(within(value, -kMost, kMost));
}

/// a * b in Q24, as a and b are. The product is computed in two parts, as it may have more than 63 bits.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t times(std::int32_t a, std::int64_t b) {
  return a * (b >> kPlaceBits) + shift_rounded(a * (b & (kPlaceOne - 1)), kPlaceBits);
}

/// The polynomial of x with these coefficients, that of the highest power first; all in Q30.
template <class... Rest>
LOCKSTEP_HOST_DEVICE constexpr std::int64_t polynomial(std::int64_t x, std::int64_t first, Rest... rest) {
  std::int64_t sum = first;
  ((sum = rest + shift_rounded(sum * x, 30)), ...);
  return sum;
}

/// Sine of an angle, in Q30. Hastings, "Approximations for digital computers", 1955, sheet 16: within 5e-9.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t sine(std::int32_t angle) {
  const std::uint32_t part = static_cast<std::uint32_t>(angle) & 0x3FFFFFFFU, quarter = part >> 28;
  std::int64_t t = part & (kQuarterTurn - 1);
  if (quarter % 2 == 1) t = kQuarterTurn - t;
  t <<= 2;
  const std::int64_t square = shift_rounded(t * t, 30);
  const std::int64_t sum = polynomial(square, 162655, -5018418, 85566142, -693598253, 1686629704);
  const std::int64_t value = shift_rounded(sum * t, 30);
  return quarter < 2 ? value : -value;
}

/// 2^t, both in Q24, for |t| <= 4. The series of the exponential function for the part within half of a whole
/// number: within 1e-8.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t power_of_two(std::int32_t t) {
  const std::int32_t whole = (t + kPlaceOne / 2) >> kPlaceBits;
  const std::int64_t part = static_cast<std::int64_t>(t - whole * kPlaceOne) * 64;  // Q30
  const std::int64_t sum = polynomial(part, 16377, 165394, 1431680, 10327387, 59597083, 257941248, 744261118,
                                      std::int64_t{1} << 30);
  return shift_rounded(sum, 6 - whole);
}

/// Rounded down.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t square_root(std::int64_t value) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit > 0; bit >>= 1)
    if ((root + bit) * (root + bit) <= value) root += bit;
  return root;
}

}  // namespace augment

}  // namespace lockstep
