// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The bytes of an augmented image on a CPU, and of two that are mixed. They are those of augmented_byte(), row by row
/// where a row can be copied, and with places between pixels looked up once for all channels.
#include "kernels/numerics/augment.hpp"

#include "kernels/cpu/ops.hpp"
#include "kernels/mix.hpp"
#include "kernels/numerics/augment_draws.hpp"
#include "kernels/numerics/augment_pixels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {
namespace {

using augment::kPlaceBits;
using augment::kPlaceOne;

constexpr bool is_whole(std::int64_t place) {
  return (place & (kPlaceOne - 1)) >> (kPlaceBits - augment::kTapBits) == 0;
}

constexpr bool is_one(std::int32_t coefficient) {
  return coefficient == kPlaceOne || coefficient == -kPlaceOne;
}

/// True if rows stay rows of the same pixels, in this or the other direction.
bool moves_whole_rows(const AugmentMap& map) {
  return is_one(map.xx) && is_one(map.yy) && map.xy == 0 && map.yx == 0 && is_whole(map.x0) &&
         is_whole(map.y0);
}

/// to[x] = from[first + x], or from[first - x] where it is mirrored; 0 beyond the ends.
void copy_row(const std::uint8_t* from, std::int64_t first, bool mirrored, std::int64_t width,
              std::uint8_t* to) {
  const std::int64_t begin = std::clamp<std::int64_t>(mirrored ? first - width + 1 : -first, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(mirrored ? first + 1 : width - first, begin, width);
  std::fill_n(to, begin, std::uint8_t{0});
  if (begin < end && mirrored) {
    std::reverse_copy(from + (first - end + 1), from + (first - begin + 1), to + begin);
  } else if (begin < end) {
    std::copy_n(from + (first + begin), end - begin, to + begin);
  }
  std::fill_n(to + end, width - end, std::uint8_t{0});
}

void move_rows(const AugmentPlan& plan, const AugmentMap& map, const std::uint8_t* image, std::uint8_t* to) {
  const std::int64_t first = map.x0 >> kPlaceBits;
  for (int c = 0; c < plan.channels; ++c, image += plan.plane()) {
    for (int y = 0; y < plan.height; ++y, to += plan.width) {
      const std::int64_t row = (std::int64_t{map.yy} * y + map.y0) >> kPlaceBits;
      if (row < 0 || row >= plan.height) {
        std::fill_n(to, plan.width, std::uint8_t{0});
      } else {
        copy_row(image + row * plan.width, first, map.xx < 0, plan.width, to);
      }
    }
  }
}

/// Weights of the four pixels around a place: in whole numbers, blend() multiplied out.
struct TapWeights {
  explicit TapWeights(const augment::Taps& taps) {
    const std::int32_t left = augment::kTapOne - taps.right, upper = augment::kTapOne - taps.lower;
    upper_left = upper * left, upper_right = upper * taps.right;
    lower_left = taps.lower * left, lower_right = taps.lower * taps.right;
  }
  /// @param at  the upper left one, in rows of `width`
  std::uint8_t blend(const std::uint8_t* at, std::ptrdiff_t width) const {
    const std::int32_t sum =
        at[0] * upper_left + at[1] * upper_right + at[width] * lower_left + at[width + 1] * lower_right;
    return static_cast<std::uint8_t>((sum + augment::kTapOne * augment::kTapOne / 2) >>
                                     (2 * augment::kTapBits));
  }

  std::int32_t upper_left, upper_right, lower_left, lower_right;
};

/// All channels of a row of the result.
void interpolate_row(const AugmentPlan& plan, const AugmentMap& map, int y, const std::uint8_t* image,
                     std::uint8_t* to) {
  const std::int64_t plane = plan.plane();
  std::int64_t place_x = std::int64_t{map.xy} * y + map.x0, place_y = std::int64_t{map.yy} * y + map.y0;
  for (int x = 0; x < plan.width; ++x, place_x += map.xx, place_y += map.yx) {
    const augment::Taps taps = augment::taps_at(place_x, place_y);
    const bool inside =
        taps.column >= 0 && taps.column + 1 < plan.width && taps.row >= 0 && taps.row + 1 < plan.height;
    if (inside) {
      const TapWeights weights(taps);
      const std::uint8_t* at = image + std::int64_t{taps.row} * plan.width + taps.column;
      for (int c = 0; c < plan.channels; ++c, at += plane) to[c * plane + x] = weights.blend(at, plan.width);
    } else {
      for (int c = 0; c < plan.channels; ++c)
        to[c * plane + x] = static_cast<std::uint8_t>(augment::pixel_at(plan, image + c * plane, taps));
    }
  }
}

void erase(const AugmentPlan& plan, const PixelChange& change, std::uint8_t* image) {
  const auto [left, top, right, bottom] = change.numbers;
  for (int c = 0; c < plan.channels; ++c, image += plan.plane())
    for (std::int64_t y = top; y < bottom; ++y)
      std::fill_n(image + y * plan.width + left, std::max(right - left, 0), std::uint8_t{0});
}

/// Changes bytes that need no other channel.
void change_bytes(const PixelChange& change, std::size_t count, std::uint8_t* bytes) {
  std::array<std::uint8_t, 256> becomes;
  for (int value = 0; value < 256; ++value) {
    int changed = value;
    augment::change_pixel(change, 0, 0, 1, &changed);
    becomes[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(changed);
  }
  for (std::size_t i = 0; i < count; ++i) bytes[i] = becomes[bytes[i]];
}

/// Changes red, green and blue.
void change_colours(const AugmentPlan& plan, const PixelChange& change, std::uint8_t* image) {
  const auto [brightness, contrast, saturation, unused] = change.numbers;
  const std::int64_t plane = plan.plane();
  std::uint8_t *red = image, *green = image + plane, *blue = image + 2 * plane;
  for (std::int64_t i = 0; i < plane; ++i) {
    const int r = augment::stretch(augment::brighten(red[i], brightness), contrast);
    const int g = augment::stretch(augment::brighten(green[i], brightness), contrast);
    const int b = augment::stretch(augment::brighten(blue[i], brightness), contrast);
    const int grey = augment::lightness(r, g, b);
    red[i] = static_cast<std::uint8_t>(augment::saturate(r, grey, saturation));
    green[i] = static_cast<std::uint8_t>(augment::saturate(g, grey, saturation));
    blue[i] = static_cast<std::uint8_t>(augment::saturate(b, grey, saturation));
  }
}

}  // namespace

void augment_image(const AugmentPlan& plan, std::int64_t epoch, std::uint32_t sample,
                   const std::uint8_t* image, std::uint8_t* to) {
  SampleAugment drawn;
  draw_augment(plan, epoch, sample, drawn);
  if (moves_whole_rows(drawn.map)) {
    move_rows(plan, drawn.map, image, to);
  } else {
    for (int y = 0; y < plan.height; ++y)
      interpolate_row(plan, drawn.map, y, image, to + std::int64_t{y} * plan.width);
  }
  for (int i = 0; i < drawn.count; ++i) {
    const PixelChange& change = drawn.changes[i];
    if (change.kind == AugmentKind::kErase) {
      erase(plan, change, to);
    } else if (plan.mixes_channels != 0) {
      change_colours(plan, change, to);
    } else {
      change_bytes(change, static_cast<std::size_t>(plan.channels * plan.plane()), to);
    }
  }
}

void mix_images(const AugmentPlan& plan, const SampleMix& mix, const std::uint8_t* partner,
                std::uint8_t* image) {
  for (int c = 0; c < plan.channels; ++c, image += plan.plane(), partner += plan.plane()) {
    for (int y = mix.top; y < mix.bottom; ++y) {
      const std::int64_t row = std::int64_t{y} * plan.width;
      for (std::int64_t at = row + mix.left; at < row + mix.right; ++at)
        image[at] = mixed_byte(mix, image[at], partner[at]);
    }
  }
}

}  // namespace lockstep::cpu
