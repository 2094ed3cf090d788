// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The memory of a relu, a bit for each number: how vectors of any length store and load it.
///
/// Compiled once for each instruction set (Highway's foreach_target), so the guard is toggled.
#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>

#if defined(LOCKSTEP_CPU_SIGN_BITS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_SIGN_BITS_INL_HPP
#undef LOCKSTEP_CPU_SIGN_BITS_INL_HPP
#else
#define LOCKSTEP_CPU_SIGN_BITS_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kByte = 8;  ///< numbers whose bits lie in one

/// The bits of numbers from i on, a multiple of the lanes. Short vectors share a byte: it must be stored in order.
template <class D, class M = hn::Mask<D>>
HWY_INLINE void store_bits(D d, M mask, std::size_t i, std::uint8_t* bits) {
#if HWY_TARGET == HWY_SCALAR
  const unsigned here = hn::AllTrue(d, mask) ? 1 : 0;
#else
  if constexpr (hn::MaxLanes(D()) >= kByte) {
    hn::StoreMaskBits(d, mask, bits + i / kByte);
    return;
  }
  std::uint8_t stored[8];
  hn::StoreMaskBits(d, mask, stored);
  const unsigned here = stored[0];
#endif
  const unsigned before = i % kByte == 0 ? 0 : bits[i / kByte];
  bits[i / kByte] = static_cast<std::uint8_t>(before | here << i % kByte);
}

template <class D>
HWY_INLINE hn::Mask<D> load_bits(D d, std::size_t i, const std::uint8_t* bits) {
#if HWY_TARGET == HWY_SCALAR
  return hn::FirstN(d, bits[i / kByte] >> i % kByte & 1);
#else
  if constexpr (hn::MaxLanes(D()) >= kByte) {
    return hn::LoadMaskBits(d, bits + i / kByte);
  } else {
    const std::uint8_t here[8] = {static_cast<std::uint8_t>(bits[i / kByte] >> i % kByte)};
    return hn::LoadMaskBits(d, here);
  }
#endif
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
