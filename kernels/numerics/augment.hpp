// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Augmentation of training images: the numbers drawn for a sample, and each byte of the result.
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

/// Sine of an angle, in Q30. Hastings, "Approximations for digital computers", 1955, sheet 16: within 5e-9.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t sine(std::int32_t angle) {
  constexpr std::int64_t kC1 = 1686629704, kC3 = -693598253, kC5 = 85566142, kC7 = -5018418, kC9 = 162655;
  const std::uint32_t part = static_cast<std::uint32_t>(angle) & 0x3FFFFFFFU, quarter = part >> 28;
  std::int64_t t = part & (kQuarterTurn - 1);
  if (quarter % 2 == 1) t = kQuarterTurn - t;
  t <<= 2;
  const std::int64_t square = shift_rounded(t * t, 30);
  std::int64_t sum = kC9;
  sum = kC7 + shift_rounded(sum * square, 30);
  sum = kC5 + shift_rounded(sum * square, 30);
  sum = kC3 + shift_rounded(sum * square, 30);
  sum = kC1 + shift_rounded(sum * square, 30);
  const std::int64_t value = shift_rounded(sum * t, 30);
  return quarter < 2 ? value : -value;
}

/// 2^t, both in Q24, for |t| <= 4. The series of the exponential function for the part within half of a whole
/// number: within 1e-8.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t power_of_two(std::int32_t t) {
  const std::int32_t whole = (t + kPlaceOne / 2) >> kPlaceBits;
  const std::int64_t part = static_cast<std::int64_t>(t - whole * kPlaceOne) * 64;  // Q30
  std::int64_t sum = 16377;
  sum = 165394 + shift_rounded(sum * part, 30);
  sum = 1431680 + shift_rounded(sum * part, 30);
  sum = 10327387 + shift_rounded(sum * part, 30);
  sum = 59597083 + shift_rounded(sum * part, 30);
  sum = 257941248 + shift_rounded(sum * part, 30);
  sum = 744261118 + shift_rounded(sum * part, 30);
  sum = (std::int64_t{1} << 30) + shift_rounded(sum * part, 30);
  return shift_rounded(sum, 6 - whole);
}

/// Rounded down.
LOCKSTEP_HOST_DEVICE constexpr std::int64_t square_root(std::int64_t value) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit > 0; bit >>= 1)
    if ((root + bit) * (root + bit) <= value) root += bit;
  return root;
}

// Draws: whole numbers from 32 random bits.

/// Uniform from low to high, both included.
LOCKSTEP_HOST_DEVICE constexpr std::int32_t between(std::uint32_t bits, std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  return static_cast<std::int32_t>(low + static_cast<std::int64_t>((bits * count) >> 32));
}

/// @param chance  in Q30
LOCKSTEP_HOST_DEVICE constexpr bool happens(std::uint32_t bits, std::int32_t chance) {
  return static_cast<std::int64_t>(bits >> 2) < chance;
}

/// The random words of an entry of the list. Word w is word w % 4 of philox(seed, {2 entry + w / 4, sample,
/// random_stream(kAugment, low 24 bits of epoch), epoch >> 24}).
struct Draws {
  Philox4 blocks[2];

  LOCKSTEP_HOST_DEVICE constexpr std::uint32_t operator[](int word) const {
    return blocks[word / 4].value[word % 4];
  }
};

LOCKSTEP_HOST_DEVICE constexpr Draws draws_of(std::uint64_t seed, std::int64_t epoch, std::uint32_t sample,
                                              int entry) {
  const std::uint32_t stream =
      random_stream(RandomUse::kAugment, static_cast<std::uint32_t>(epoch & 0x00FFFFFF));
  const auto high = static_cast<std::uint32_t>(epoch >> 24), block = static_cast<std::uint32_t>(2 * entry);
  return {{philox(seed, {{block, sample, stream, high}}), philox(seed, {{block + 1, sample, stream, high}})}};
}

// The map: while it is put together its x0 and y0 are the way from the middle of the image.

/// The pixels that `map` shows, moved once more: `next` says where a pixel of the new result was.
LOCKSTEP_HOST_DEVICE constexpr AugmentMap compose(const AugmentMap& map, const AugmentMap& next) {
  const auto sum = [](std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
    return coefficient(shift_rounded(std::int64_t{a} * b + std::int64_t{c} * d, kPlaceBits));
  };
  constexpr std::int64_t kFar = std::int64_t{1} << 50;
  return {sum(map.xx, next.xx, map.xy, next.yx),
          sum(map.xx, next.xy, map.xy, next.yy),
          sum(map.yx, next.xx, map.yy, next.yx),
          sum(map.yx, next.xy, map.yy, next.yy),
          within(map.x0 + times(map.xx, next.x0) + times(map.xy, next.y0), -kFar, kFar),
          within(map.y0 + times(map.yx, next.x0) + times(map.yy, next.y0), -kFar, kFar)};
}

LOCKSTEP_HOST_DEVICE constexpr AugmentMap moved(std::int64_t x, std::int64_t y) {
  return {kPlaceOne, 0, 0, kPlaceOne, x * kPlaceOne, y * kPlaceOne};
}

/// A box of an area and a ratio of its sides that were drawn. Sides in Q24, as shares of the image's, at most all.
struct Box {
  std::int32_t width, height;
};

/// @param area   share of the image's, in Q24
/// @param ratio  width / height as a power of two, in Q24
LOCKSTEP_HOST_DEVICE constexpr Box box_of(const AugmentPlan& plan, std::int32_t area, std::int32_t ratio) {
  const auto side = [area](std::int64_t power, std::int64_t across, std::int64_t along) {
    const std::int64_t square = ((area * power) >> 8) * across / along;  // Q40
    return static_cast<std::int32_t>(square_root(within(square, 0, std::int64_t{1} << 40) << 8));
  };
  return {side(power_of_two(ratio), plan.height, plan.width),
          side(power_of_two(-ratio), plan.width, plan.height)};
}

/// numbers: least and largest area, least and largest ratio, as box_of() has them.
LOCKSTEP_HOST_DEVICE constexpr AugmentMap draw_resized_crop(const AugmentPlan& plan,
                                                            const std::int32_t* numbers, const Draws& draws) {
  const Box box =
      box_of(plan, between(draws[0], numbers[0], numbers[1]), between(draws[1], numbers[2], numbers[3]));
  // The middle of the box is anywhere where the box is in the image.
  const std::int32_t beside = (kPlaceOne - box.width) / 2, above = (kPlaceOne - box.height) / 2;
  return {box.width,
          0,
          0,
          box.height,
          std::int64_t{between(draws[2], -beside, beside)} * plan.width,
          std::int64_t{between(draws[3], -above, above)} * plan.height};
}

/// Draws what one entry does to the place of pixels.
/// Its numbers, by kind. kCrop: pixels added on each side. kFlip: chances of left and right, of top and bottom, in Q30.
/// kRotate: the largest angle. kShift: the largest ways in pixels, aside and down. kScale: least and largest factor, in
/// Q24.
LOCKSTEP_HOST_DEVICE constexpr AugmentMap draw_map(const AugmentPlan& plan, const AugmentStep& step,
                                                   const Draws& draws) {
  const std::int32_t* n = step.numbers;
  switch (step.kind) {
    case AugmentKind::kCrop:
      return moved(between(draws[0], -n[0], n[0]), between(draws[1], -n[0], n[0]));
    case AugmentKind::kShift:
      return moved(between(draws[0], -n[0], n[0]), between(draws[1], -n[1], n[1]));
    case AugmentKind::kResizedCrop:
      return draw_resized_crop(plan, n, draws);
    case AugmentKind::kFlip:
      return {happens(draws[0], n[0]) ? -kPlaceOne : kPlaceOne, 0, 0,
              happens(draws[1], n[1]) ? -kPlaceOne : kPlaceOne, 0, 0};
    case AugmentKind::kRotate: {
      const std::int32_t angle = between(draws[0], -n[0], n[0]);
      const auto s = static_cast<std::int32_t>(shift_rounded(sine(angle), 6));
      const auto c = static_cast<std::int32_t>(shift_rounded(sine(angle + kQuarterTurn), 6));
      return {c, -s, s, c, 0, 0};
    }
    case AugmentKind::kScale: {
      const std::int64_t factor = between(draws[0], n[0], n[1]);
      const std::int32_t inverse = coefficient(((std::int64_t{1} << 48) + factor / 2) / factor);
      return {inverse, 0, 0, inverse, 0, 0};
    }
    default:
      return moved(0, 0);
  }
}

// Changes of pixels.

/// A hole of so many pixels around a place, as far as it lies in the image.
LOCKSTEP_HOST_DEVICE constexpr PixelChange hole(const AugmentPlan& plan, std::int32_t left, std::int32_t top,
                                                std::int32_t width, std::int32_t height) {
  return {AugmentKind::kErase,
          {static_cast<std::int32_t>(within(left, 0, plan.width)),
           static_cast<std::int32_t>(within(top, 0, plan.height)),
           static_cast<std::int32_t>(within(std::int64_t{left} + width, 0, plan.width)),
           static_cast<std::int32_t>(within(std::int64_t{top} + height, 0, plan.height))}};
}

/// Its numbers, by kind. kJitter: least and largest factor of brightness, contrast, saturation, in Q16. kErase: chance
/// in Q30, least and largest area, least and largest ratio, see box_of(). kCutout: the side in pixels.
LOCKSTEP_HOST_DEVICE constexpr PixelChange draw_change(const AugmentPlan& plan, const AugmentStep& step,
                                                       const Draws& draws) {
  const std::int32_t* n = step.numbers;
  if (step.kind == AugmentKind::kJitter) {
    return {AugmentKind::kJitter,
            {between(draws[0], n[0], n[1]), between(draws[1], n[2], n[3]), between(draws[2], n[4], n[5]), 0}};
  }
  if (step.kind == AugmentKind::kCutout) {
    return hole(plan, between(draws[0], 0, plan.width - 1) - n[0] / 2,
                between(draws[1], 0, plan.height - 1) - n[0] / 2, n[0], n[0]);
  }
  if (!happens(draws[0], n[0])) return hole(plan, 0, 0, 0, 0);
  const Box box = box_of(plan, between(draws[1], n[1], n[2]), between(draws[2], n[3], n[4]));
  const auto width =
      static_cast<std::int32_t>(shift_rounded(std::int64_t{box.width} * plan.width, kPlaceBits));
  const auto height =
      static_cast<std::int32_t>(shift_rounded(std::int64_t{box.height} * plan.height, kPlaceBits));
  return hole(plan, between(draws[3], 0, plan.width - width), between(draws[4], 0, plan.height - height),
              width, height);
}

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

/// Draws all that happens to a sample in an epoch. Equal on every machine.
/// @param sample  its number in the set
LOCKSTEP_HOST_DEVICE constexpr void draw_augment(const AugmentPlan& plan, std::int64_t epoch,
                                                 std::uint32_t sample, SampleAugment& to) {
  AugmentMap map = augment::moved(0, 0);
  to.count = 0;
  for (int i = 0; i < plan.count; ++i) {
    const AugmentStep& step = plan.steps[i];
    const augment::Draws draws = augment::draws_of(plan.seed, epoch, sample, i);
    if (moves_pixels(step.kind)) {
      map = augment::compose(map, augment::draw_map(plan, step, draws));
    } else {
      to.changes[to.count++] = augment::draw_change(plan, step, draws);
    }
  }
  // From the middle of the image to its corner, and half a weight more, so that weights are rounded.
  constexpr std::int64_t kHalf = augment::kPlaceOne / 2,
                         kRound = std::int64_t{1} << (augment::kPlaceBits - augment::kTapBits - 1);
  const std::int64_t x = (plan.width - 1) * kHalf, y = (plan.height - 1) * kHalf;
  map.x0 += x - augment::times(map.xx, x) - augment::times(map.xy, y) + kRound;
  map.y0 += y - augment::times(map.yx, x) - augment::times(map.yy, y) + kRound;
  to.map = map;
}

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
