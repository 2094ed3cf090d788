// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How two training images become one, with the labels of both. data/augmentation.hpp draws which, and their shares.
///
/// Both images are augmented first (kernels/numerics/augment.hpp). All of it is arithmetic on integers, the same on
/// every machine; docs/arithmetic.md has the rules in words.
#pragma once

#include "kernels/numerics/augment.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace lockstep {

inline constexpr int kShareBits = 16;
inline constexpr std::int32_t kShareOne = 1 << kShareBits;

/// The partner of a sample in a mixed batch. Shares are the sample's, in Q16; its partner has the rest.
struct SampleMix {
  std::int32_t partner = 0;  ///< its number in the set
  std::int32_t share = kShareOne;
  std::int32_t pixel_share = kShareOne;  ///< share of the box's pixels; outside of it all are the sample's
  std::int16_t left = 0, top = 0, right = 0, bottom = 0;  ///< the last two excluded

  LOCKSTEP_HOST_DEVICE constexpr bool is_mixed() const { return left < right && top < bottom; }
  LOCKSTEP_HOST_DEVICE constexpr bool touches(int x, int y) const {
    return x >= left && x < right && y >= top && y < bottom;
  }
};

/// The two labels of a sample: the one that is larger in it, then the other. Equal shares: the sample's label first.
struct LabelPair {
  std::int32_t first = 0;
  MixedLabel second;
};

/// A byte of the result, where the mix touches it.
LOCKSTEP_HOST_DEVICE constexpr std::uint8_t mixed_byte(const SampleMix& mix, int own, int partner) {
  const std::int32_t sum = own * mix.pixel_share + partner * (kShareOne - mix.pixel_share);
  return static_cast<std::uint8_t>(augment::shift_rounded(sum, kShareBits));
}

/// Shares of 16 bits are floats as they are.
LOCKSTEP_HOST_DEVICE constexpr LabelPair mixed_labels(const SampleMix& mix, std::int32_t own,
                                                      std::int32_t partner) {
  constexpr float kUnit = 1.0F / static_cast<float>(kShareOne);
  if (!mix.is_mixed()) return {own, {own, 0}};
  if (mix.share >= kShareOne / 2) return {own, {partner, static_cast<float>(kShareOne - mix.share) * kUnit}};
  return {partner, {own, static_cast<float>(mix.share) * kUnit}};
}

}  // namespace lockstep
