// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The shapes of the ten digits.
#include "data/digit_strokes.hpp"

#include "common/error.hpp"

#include <array>

namespace lockstep {
namespace {

constexpr Curve kZero[] = {{{0.5F, 0}, {1, 0}, {1, 0.5F}},
                           {{1, 0.5F}, {1, 1}, {0.5F, 1}},
                           {{0.5F, 1}, {0, 1}, {0, 0.5F}},
                           {{0, 0.5F}, {0, 0}, {0.5F, 0}}};
constexpr Curve kOne[] = {{{0.3F, 0.2F}, {0.45F, 0.15F}, {0.55F, 0}},
                          {{0.55F, 0}, {0.55F, 0.5F}, {0.55F, 1}}};
constexpr Curve kTwo[] = {{{0.05F, 0.25F}, {0.1F, 0}, {0.5F, 0}},
                          {{0.5F, 0}, {1, 0}, {0.9F, 0.35F}},
                          {{0.9F, 0.35F}, {0.8F, 0.6F}, {0.05F, 1}},
                          {{0.05F, 1}, {0.5F, 0.97F}, {1, 1}}};
constexpr Curve kThree[] = {{{0.05F, 0.1F}, {0.9F, -0.15F}, {0.85F, 0.25F}},
                            {{0.85F, 0.25F}, {0.8F, 0.48F}, {0.35F, 0.48F}},
                            {{0.35F, 0.48F}, {0.95F, 0.48F}, {0.95F, 0.75F}},
                            {{0.95F, 0.75F}, {0.9F, 1.1F}, {0.05F, 0.92F}}};
constexpr Curve kFour[] = {{{0.65F, 0}, {0.4F, 0.35F}, {0.05F, 0.65F}},
                           {{0.05F, 0.65F}, {0.5F, 0.65F}, {1, 0.65F}},
                           {{0.72F, 0.3F}, {0.72F, 0.6F}, {0.7F, 1}}};
constexpr Curve kFive[] = {{{0.9F, 0}, {0.5F, 0.02F}, {0.2F, 0}},
                           {{0.2F, 0}, {0.15F, 0.2F}, {0.12F, 0.45F}},
                           {{0.12F, 0.45F}, {0.9F, 0.3F}, {0.92F, 0.68F}},
                           {{0.92F, 0.68F}, {0.9F, 1.1F}, {0.05F, 0.92F}}};
constexpr Curve kSix[] = {{{0.75F, 0}, {0.1F, 0.25F}, {0.08F, 0.65F}},
                          {{0.08F, 0.65F}, {0.1F, 1.02F}, {0.5F, 1}},
                          {{0.5F, 1}, {0.95F, 1}, {0.92F, 0.7F}},
                          {{0.92F, 0.7F}, {0.75F, 0.35F}, {0.1F, 0.62F}}};
constexpr Curve kSeven[] = {{{0.05F, 0}, {0.5F, 0.02F}, {0.95F, 0}}, {{0.95F, 0}, {0.6F, 0.4F}, {0.4F, 1}}};
constexpr Curve kEight[] = {{{0.5F, 0.47F}, {-0.15F, 0.2F}, {0.5F, 0}},
                            {{0.5F, 0}, {1.15F, 0.2F}, {0.5F, 0.47F}},
                            {{0.5F, 0.47F}, {-0.35F, 0.85F}, {0.5F, 1}},
                            {{0.5F, 1}, {1.35F, 0.85F}, {0.5F, 0.47F}}};
constexpr Curve kNine[] = {{{0.9F, 0.3F}, {0.85F, -0.05F}, {0.45F, 0}},
                           {{0.45F, 0}, {0.05F, 0.05F}, {0.1F, 0.32F}},
                           {{0.1F, 0.32F}, {0.25F, 0.65F}, {0.9F, 0.3F}},
                           {{0.9F, 0.3F}, {0.9F, 0.7F}, {0.65F, 1}}};

}  // namespace

std::span<const Curve> strokes_of_digit(std::int32_t digit) {
  static constexpr std::array<std::span<const Curve>, 10> kDigits = {kZero, kOne, kTwo,   kThree, kFour,
                                                                     kFive, kSix, kSeven, kEight, kNine};
  LOCKSTEP_CHECK(digit >= 0 && digit < static_cast<std::int32_t>(kDigits.size()));
  return kDigits[static_cast<std::size_t>(digit)];
}

}  // namespace lockstep
