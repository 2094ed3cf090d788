// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One multiplication and one addition a word; a block's multipliers lie in a table of 8 KiB.
#include "kernels/cpu/fingerprint.hpp"

#include "kernels/cpu/simd_targets.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fingerprint.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Words as they are added: floats by their bits, zero-extended.
template <class D>
HWY_INLINE hn::Vec<D> load_words(D d, const std::int64_t* words) {
  return hn::BitCast(d, hn::LoadU(hn::RebindToSigned<D>(), words));
}
template <class D>
HWY_INLINE hn::Vec<D> load_words(D d, const float* words) {
  const hn::Rebind<float, D> floats;
  const hn::Rebind<std::uint32_t, D> bits;
  return hn::PromoteTo(d, hn::BitCast(bits, hn::LoadU(floats, words)));
}

/// Of words that lie in one block.
template <class Word>
HWY_INLINE std::uint64_t sum_of_block(const Word* words, const std::uint64_t* multipliers, std::size_t size) {
  const hn::CappedTag<std::uint64_t, 8> whole;
  const hn::CappedTag<std::uint64_t, 1> single;
  const std::size_t lanes = hn::Lanes(whole);
  auto a = hn::Zero(whole), b = hn::Zero(whole);
  std::size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    a = hn::Add(a, hn::Mul(load_words(whole, words + i), hn::LoadU(whole, multipliers + i)));
    b = hn::Add(b, hn::Mul(load_words(whole, words + i + lanes), hn::LoadU(whole, multipliers + i + lanes)));
  }
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(whole, hn::Add(a, b)));
  for (; i < size; ++i) sum += hn::GetLane(load_words(single, words + i)) * multipliers[i];
  return sum;
}

template <class Word>
HWY_INLINE std::uint64_t sum_of_words(const std::uint64_t* table, std::uint32_t buffer, std::size_t first,
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

std::uint64_t fingerprint_of_floats(const std::uint64_t* table, std::uint32_t buffer, std::size_t first,
                                    const float* words, std::size_t size) {
  return sum_of_words(table, buffer, first, words, size);
}

std::uint64_t fingerprint_of_integers(const std::uint64_t* table, std::uint32_t buffer, std::size_t first,
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
  std::array<std::uint64_t, kFingerprintBlock> table{};
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
