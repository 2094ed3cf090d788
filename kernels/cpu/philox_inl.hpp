// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Philox4x32-10 for many counters at a time, compiled once for each SIMD target: include after highway.h.
/// The oracle is philox() in kernels/numerics/random.hpp.

#if defined(LOCKSTEP_CPU_PHILOX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_PHILOX_INL_HPP
#undef LOCKSTEP_CPU_PHILOX_INL_HPP
#else
#define LOCKSTEP_CPU_PHILOX_INL_HPP
#endif

#include "hwy/highway.h"
#include "kernels/numerics/random.hpp"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// philox(key, counter), philox(key, counter + {0, 1, 0, 0}) and so on: word w of block n goes to
/// words[w][n]. `count` is a multiple of 16, rows of words are vector-aligned.
template <int kRowSize>
HWY_INLINE void philox_blocks(std::uint64_t key, const Philox4& counter, int count,
                              std::uint32_t (&words)[4][kRowSize]) {
  for (int n = 0; n < count; ++n) {
    Philox4 block = counter;
    block.value[1] += static_cast<std::uint32_t>(n);
    block = philox(key, block);
    for (int w = 0; w < 4; ++w) words[w][n] = block.value[w];
  }
}

#else

/// Four vectors of 32-bit numbers, one in each 64-bit lane. Upper halves are rubbish: the multiplication
/// reads only the lower ones, and exclusive or never carries.
template <class V64>
struct PhiloxLanes {
  V64 c0, c1, c2, c3;
};

template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE PhiloxLanes<V64> philox_lanes(D64 d64, std::uint64_t key, PhiloxLanes<V64> c) {
  const hn::Repartition<std::uint32_t, D64> d32;
  const auto multiplier0 = hn::Set(d32, 0xD2511F53U);
  const auto multiplier1 = hn::Set(d32, 0xCD9E8D57U);
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto product0 = hn::MulEven(hn::BitCast(d32, c.c0), multiplier0);
    const auto product1 = hn::MulEven(hn::BitCast(d32, c.c2), multiplier1);
    c.c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c.c1), hn::Set(d64, key0));
    c.c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c.c3), hn::Set(d64, key1));
    c.c1 = product1;
    c.c3 = product0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

/// The lower halves of the 64-bit lanes of low, then those of high.
template <class D32, class V64>
HWY_INLINE void store_lower_halves(D32 d32, V64 low, V64 high, std::uint32_t* words) {
  hn::Store(hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low)), d32, words);
}

/// Computes what its version for plain code above does.
template <int kRowSize>
HWY_INLINE void philox_blocks(std::uint64_t key, const Philox4& counter, int count,
                              std::uint32_t (&words)[4][kRowSize]) {
  const hn::CappedTag<std::uint32_t, 16> d32;
  const hn::Repartition<std::uint64_t, decltype(d32)> d64;
  const auto half = hn::Set(d64, hn::Lanes(d64));
  const auto c0 = hn::Set(d64, counter.value[0]);
  const auto c2 = hn::Set(d64, counter.value[2]);
  const auto c3 = hn::Set(d64, counter.value[3]);
  for (int n = 0; n < count; n += static_cast<int>(hn::Lanes(d32))) {
    const auto c1 = hn::Iota(d64, counter.value[1] + static_cast<std::uint32_t>(n));
    const auto low = philox_lanes(d64, key, {c0, c1, c2, c3});
    const auto high = philox_lanes(d64, key, {c0, hn::Add(c1, half), c2, c3});
    store_lower_halves(d32, low.c0, high.c0, words[0] + n);
    store_lower_halves(d32, low.c1, high.c1, words[1] + n);
    store_lower_halves(d32, low.c2, high.c2, words[2] + n);
    store_lower_halves(d32, low.c3, high.c3, words[3] + n);
  }
}

#endif

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
