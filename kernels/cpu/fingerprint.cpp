// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One multiplication and one addition a word; a block's multipliers lie in a table of 4 KiB.
#include "kernels/numerics/fingerprint.hpp"

#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <array>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fingerprint.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE std::uint64_t bits_of(float word) {
  return std::bit_cast<std::uint32_t>(word);
}
HWY_INLINE std::uint64_t bits_of(std::int64_t word) {
  return static_cast<std::uint64_t>(word);
}

/// Sums words of one block.
template <class Word>
HWY_INLINE std::uint64_t sum_of_block(const Word* words, const std::uint32_t* multipliers, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += bits_of(words[i]) * multipliers[i];
  return sum;
}

#else

/// The product of the low halves of the lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_low(D /*d*/, V a, V b) {
  const hn::Repartition<std::uint32_t, D> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
}

/// Modulo 2^64. (GCC's _mm512_reduce_add_epi64, which Highway's SumOfLanes calls, adds signed numbers.)
template <class D, class V = hn::Vec<D>>
HWY_INLINE std::uint64_t sum_of_lanes(D d, V v) {
  HWY_ALIGN std::uint64_t lanes[8] = {};
  hn::Store(v, d, lanes);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum += lane;
  return sum;
}

// Sums words of one block; two floats a lane, by their bits.
HWY_INLINE std::uint64_t sum_of_block(const float* words, const std::uint32_t* multipliers,
                                      std::size_t size) {
  const hn::CappedTag<std::uint64_t, 8> d;
  const hn::Repartition<std::uint32_t, decltype(d)> halves;
  const hn::Repartition<float, decltype(d)> floats;
  const std::size_t lanes = hn::Lanes(halves);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto word = hn::BitCast(d, hn::LoadU(floats, words + i));
    const auto multiplier = hn::BitCast(d, hn::LoadU(halves, multipliers + i));
    even = hn::Add(even, multiply_low(d, word, multiplier));
    odd = hn::Add(odd, multiply_low(d, hn::ShiftRight<32>(word), hn::ShiftRight<32>(multiplier)));
  }
  std::uint64_t sum = sum_of_lanes(d, hn::Add(even, odd));
  for (; i < size; ++i) sum += std::uint64_t{std::bit_cast<std::uint32_t>(words[i])} * multipliers[i];
  return sum;
}

HWY_INLINE std::uint64_t sum_of_block(const std::int64_t* words, const std::uint32_t* multipliers,
                                      std::size_t size) {
  const hn::CappedTag<std::uint64_t, 8> d;
  const hn::Rebind<std::uint32_t, decltype(d)> narrow;
  const hn::RebindToSigned<decltype(d)> integers;
  const std::size_t lanes = hn::Lanes(d);
  auto low = hn::Zero(d), high = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto word = hn::BitCast(d, hn::LoadU(integers, words + i));
    const auto multiplier = hn::PromoteTo(d, hn::LoadU(narrow, multipliers + i));
    low = hn::Add(low, multiply_low(d, word, multiplier));
    high = hn::Add(high, multiply_low(d, hn::ShiftRight<32>(word), multiplier));
  }
  std::uint64_t sum = sum_of_lanes(d, hn::Add(low, hn::ShiftLeft<32>(high)));
  for (; i < size; ++i) sum += static_cast<std::uint64_t>(words[i]) * multipliers[i];
  return sum;
}

#endif

template <class Word>
HWY_INLINE std::uint64_t sum_of_words(const std::uint32_t* table, std::uint32_t buffer, std::size_t first,
                                      const Word* words, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size;) {
    const std::size_t block = (first + i) / kFingerprintBlock, place = (first + i) % kFingerprintBlock;
    const std::size_t count = HWY_MIN(kFingerprintBlock - place, size - i);
    sum += block_multiplier(buffer, block) * sum_of_block(words + i, table + place, count);
    i += count;
  }
  return sum;
}

std::uint64_t fingerprint_of_floats(const std::uint32_t* table, std::uint32_t buffer, std::size_t first,
                                    const float* words, std::size_t size) {
  return sum_of_words(table, buffer, first, words, size);
}

std::uint64_t fingerprint_of_integers(const std::uint32_t* table, std::uint32_t buffer, std::size_t first,
                                      const std::int64_t* words, std::size_t size) {
  return sum_of_words(table, buffer, first, words, size);
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {
namespace {

constexpr auto kPlaceMultipliers = [] {
  std::array<std::uint32_t, kFingerprintBlock> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = place_multiplier(i);
  return table;
}();

}  // namespace

HWY_EXPORT(fingerprint_of_floats);
HWY_EXPORT(fingerprint_of_integers);

std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const float> words) {
  return HWY_DYNAMIC_DISPATCH(fingerprint_of_floats)(kPlaceMultipliers.data(), buffer, first, words.data(),
                                                     words.size());
}

std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const std::int64_t> words) {
  return HWY_DYNAMIC_DISPATCH(fingerprint_of_integers)(kPlaceMultipliers.data(), buffer, first, words.data(),
                                                       words.size());
}

}  // namespace lockstep::cpu
#endif
