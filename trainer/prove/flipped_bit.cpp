// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The difference is +-2^bit times the word's multiplier, which is odd and so can be divided by.
#include "trainer/prove/flipped_bit.hpp"

#include "kernels/numerics/fingerprint.hpp"

#include <bit>

namespace lockstep {
namespace {

/// Of an odd number mod 2^64, by Newton's iteration: each round doubles the bits that are right, from 3 on.
std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t result = odd;
  for (int round = 0; round < 5; ++round) result *= 2 - odd * result;
  return result;
}

}  // namespace

std::optional<WordBit> find_flipped_bit(std::uint64_t difference, const FingerprintedWords& words) {
  if (difference == 0) return std::nullopt;
  // Odd multipliers leave the number of trailing zeros as it is.
  const int bit = std::countr_zero(difference);
  if (bit >= words.bits) return std::nullopt;
  const std::uint64_t power = std::uint64_t{1} << bit;
  for (std::size_t i = 0; i < words.size; ++i) {
    const std::uint64_t quotient = difference * inverse(word_multiplier(words.buffer, words.first + i));
    if (quotient == power || quotient == 0 - power) return WordBit{i, bit};
  }
  return std::nullopt;
}

}  // namespace lockstep
