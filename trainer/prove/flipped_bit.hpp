// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From two fingerprints that differ to the one bit that makes the difference, if it is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lockstep {

/// Words of a buffer among which is looked.
struct FingerprintedWords {
  std::uint32_t buffer = 0;  ///< kernels/numerics/fingerprint.hpp
  std::size_t first = 0, size = 0;
  int bits = 32;  ///< of a word
};

struct WordBit {
  std::size_t word = 0;  ///< counted from FingerprintedWords::first
  int bit = 0;
  friend bool operator==(const WordBit&, const WordBit&) = default;
};

/// The bit whose flip makes the fingerprint larger by `difference`, mod 2^64. Other changes look like one with a
/// probability of about words * 2 * bits / 2^64.
std::optional<WordBit> find_flipped_bit(std::uint64_t difference, const FingerprintedWords& words);

}  // namespace lockstep
