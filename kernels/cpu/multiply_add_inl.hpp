// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The multiply-add of all kernels: rounded once on every processor. Highway's MulAdd is so only where there is an
/// instruction for it. (For doubles that are products of floats, where a product is exact, either will do.)
///
/// Compiled once for each instruction set (Highway's foreach_target), so the guard is toggled.
#include "hwy/highway.h"
#include "kernels/numerics/portable_math.hpp"

#if defined(LOCKSTEP_CPU_MULTIPLY_ADD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_MULTIPLY_ADD_INL_HPP
#undef LOCKSTEP_CPU_MULTIPLY_ADD_INL_HPP
#else
#define LOCKSTEP_CPU_MULTIPLY_ADD_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

inline constexpr bool kFuses = false;

/// a * b + c
HWY_INLINE hn::Vec1<float> multiply_add(hn::Vec1<float> a, hn::Vec1<float> b, hn::Vec1<float> c) {
  return hn::Vec1<float>(software_fma(a.raw, b.raw, c.raw));
}

#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_EMU128

inline constexpr bool kFuses = false;

/// product + term, rounded to odd: see software_fma.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V add_rounding_to_odd(D d, V product, V term, V sum) {
  const hn::RebindToSigned<D> integers;
  const V part = hn::Sub(sum, product);
  const V rest = hn::Add(hn::Sub(product, hn::Sub(sum, part)), hn::Sub(term, part));
  const auto bits = hn::BitCast(integers, sum);
  const auto is_inexact = hn::Or(hn::Lt(rest, hn::Zero(d)), hn::Gt(rest, hn::Zero(d)));
  const auto is_odd = hn::Neg(hn::And(bits, hn::Set(integers, 1)));
  // 1 where the exact sum is larger than the rounded one, disregarding signs; otherwise -1.
  const auto away =
      hn::Or(hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(integers, rest))), hn::Set(integers, 1));
  const auto change =
      hn::AndNot(is_odd, hn::And(hn::BitCast(integers, hn::VecFromMask(d, is_inexact)), away));
  return hn::BitCast(d, hn::Add(bits, change));
}

/// product + term, so that rounding it to float rounds once. Usually rounding it to double does no harm: only the
/// middle of two floats does, where it is not exact, and what is no normal float.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V add_before_rounding(D d, V product, V term) {
  const hn::RebindToSigned<D> integers;
  const V sum = hn::Add(product, term);
  const auto tail = hn::And(hn::BitCast(integers, sum), hn::Set(integers, 0x1FFFFFFF));
  const auto is_middle = hn::RebindMask(d, hn::Eq(tail, hn::Set(integers, 0x10000000)));
  const auto is_small = hn::And(hn::Lt(hn::Abs(sum), hn::Set(d, 0x1p-126)), hn::Ne(sum, hn::Zero(d)));
  if (HWY_LIKELY(hn::AllFalse(d, hn::Or(is_middle, is_small)))) return sum;
  return add_rounding_to_odd(d, product, term, sum);
}

/// a * b + c
template <class V>
HWY_INLINE V multiply_add(V a, V b, V c) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) > 2) {
    const hn::Half<decltype(d)> half;
    return hn::Combine(d,
                       multiply_add(hn::UpperHalf(half, a), hn::UpperHalf(half, b), hn::UpperHalf(half, c)),
                       multiply_add(hn::LowerHalf(half, a), hn::LowerHalf(half, b), hn::LowerHalf(half, c)));
  } else {
    const hn::Rebind<double, decltype(d)> wide;
    const auto product = hn::Mul(hn::PromoteTo(wide, a), hn::PromoteTo(wide, b));
    return hn::DemoteTo(d, add_before_rounding(wide, product, hn::PromoteTo(wide, c)));
  }
}

#else

inline constexpr bool kFuses = true;

/// a * b + c
template <class V>
HWY_INLINE V multiply_add(V a, V b, V c) {
  return hn::MulAdd(a, b, c);
}

#endif

/// c - a * b
template <class V>
HWY_INLINE V negative_multiply_add(V a, V b, V c) {
  if constexpr (kFuses) {
    return hn::NegMulAdd(a, b, c);
  } else {
    return multiply_add(hn::Neg(a), b, c);
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
