// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws what happens to a training image: where its pixels go, and how they change.
#pragma once

#include "kernels/numerics/augment.hpp"
#include "kernels/numerics/random.hpp"

#include <cstdint>

namespace lockstep {

namespace augment {

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
struct BoxSides {
  std::int32_t width, height;
};

/// @param area   share of the image's, in Q24
/// @param ratio  width / height as a power of two, in Q24
LOCKSTEP_HOST_DEVICE constexpr BoxSides box_of(const AugmentPlan& plan, std::int32_t area,
                                               std::int32_t ratio) {
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
  const BoxSides box =
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
  const BoxSides box = box_of(plan, between(draws[1], n[1], n[2]), between(draws[2], n[3], n[4]));
  const auto width =
      static_cast<std::int32_t>(shift_rounded(std::int64_t{box.width} * plan.width, kPlaceBits));
  const auto height =
      static_cast<std::int32_t>(shift_rounded(std::int64_t{box.height} * plan.height, kPlaceBits));
  return hole(plan, between(draws[3], 0, plan.width - width), between(draws[4], 0, plan.height - height),
              width, height);
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

}  // namespace lockstep
