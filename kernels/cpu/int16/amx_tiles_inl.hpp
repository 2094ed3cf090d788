// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums on tiles of 16 rows of 64 bytes, and digits for them. The engine "amx" is written once: over the processor's
/// tiles (amx.cpp), and in tests over tiles in memory. A source that includes these headers (amx_*_inl.hpp) between
/// target attributes includes first what they include.
///
/// `Tiles` has a begin() and an end() around each product of a thread, and within
///   clear()              four tiles of sums, 0
///   add(a, high, low)    their products with one tile each: high high, high low, low high, low low
///   store(parts)         the sums [4][16][16]
#pragma once

#include "kernels/cpu/int16/engines.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::cpu::int16 {
namespace {

/// Four digits of 8 bits, whose products go into one sum.
using Word = std::uint32_t;

constexpr std::size_t kSide = 16;             ///< rows of a tile, and words of a row
constexpr std::size_t kTile = kSide * kSide;  ///< words
constexpr std::size_t kTerms = 64;            ///< products that a tile adds to a sum
/// Sums of 32 bits hold so many tiles: high low and low high together, too.
constexpr std::size_t kMostTiles = 1023;
static_assert(kMostTiles * kTerms * 2 * 127 * 128 < (std::size_t{1} << 31));

/// Rounded half to even, as rounding.cpp does.
inline std::int32_t rounded(float x, float first, float second) {
  constexpr float kRounder = 12582912;  // 1.5 * 2^23: the nearest integer is left in the last bits
  return std::bit_cast<std::int32_t>(x * first * second + kRounder) - std::bit_cast<std::int32_t>(kRounder);
}
inline std::int32_t high_digit(std::int32_t q) {
  return (q + 128) >> 8;  // the low digit is the last 8 bits of q, with their sign
}
inline Word word_of(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  constexpr Word kDigit = 255;
  return (static_cast<Word>(a) & kDigit) | ((static_cast<Word>(b) & kDigit) << 8U) |
         ((static_cast<Word>(c) & kDigit) << 16U) | (static_cast<Word>(d) << 24U);
}

constexpr float kSixteenZeros[kSide] = {};
/// A row of one channel, from the first of 16 samples on; of no channel: zeros.
struct ChannelRow {
  const float* numbers = kSixteenZeros;
  std::size_t step = 0;  ///< to the next pixel
};

/// The 16 x 16 sums of one place.
template <class Tiles>
class SumTiles {
 public:
  void clear() {
    tiles_.clear();
    left_ = kMostTiles;
    was_flushed_ = false;
  }

  /// @param a          [tiles][high, low][16][16] words
  /// @param high, low  [tiles][16][16]
  void add(const Word* a, const Word* high, const Word* low, std::size_t tiles) {
    while (tiles > 0) {
      if (left_ == 0) flush();
      const std::size_t some = std::min(tiles, left_);
      for (std::size_t i = 0; i < some; ++i, a += 2 * kTile, high += kTile, low += kTile)
        tiles_.add(a, high, low);
      tiles -= some;
      left_ -= some;
    }
  }

  /// From here on total() has the sums, until clear().
  void finish() { tiles_.store(parts_); }
  /// @param i  16 * row of a + column of high and low
  std::int64_t total(std::size_t i) const { return was_flushed_ ? totals_[i] + joined(i) : joined(i); }

 private:
  std::int64_t joined(std::size_t i) const {
    const std::int64_t both = parts_[1][i] + parts_[2][i];
    return std::int64_t{parts_[0][i]} * 65536 + both * 256 + parts_[3][i];
  }
  void flush() {
    finish();
    for (std::size_t i = 0; i < kTile; ++i) totals_[i] = total(i);
    was_flushed_ = true;
    tiles_.clear();
    left_ = kMostTiles;
  }

  Tiles tiles_;
  std::size_t left_ = 0;
  bool was_flushed_ = false;
  alignas(64) std::int32_t parts_[4][kTile];
  alignas(64) std::int64_t totals_[kTile];
};

/// Between the two calls a thread owns its tiles.
template <class Tiles>
struct TilesInUse {
  TilesInUse() { Tiles::begin(); }
  ~TilesInUse() { Tiles::end(); }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;
};

}  // namespace
}  // namespace lockstep::cpu::int16
