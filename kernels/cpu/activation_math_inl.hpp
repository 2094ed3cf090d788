// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of kernels/numerics/activation_math.inc and exp_log.inc for vectors of samples, compiled once for each
/// SIMD target.

#if defined(LOCKSTEP_CPU_ACTIVATION_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_ACTIVATION_MATH_INL_HPP
#undef LOCKSTEP_CPU_ACTIVATION_MATH_INL_HPP
#else
#define LOCKSTEP_CPU_ACTIVATION_MATH_INL_HPP
#endif

#include "hwy/highway.h"
#include "kernels/cpu/multiply_add_inl.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

template <class D>
struct VectorMath {
  using V = hn::Vec<D>;
  using Integers = hn::RebindToSigned<D>;

  static HWY_INLINE V set(float x) { return hn::Set(D(), x); }
  static HWY_INLINE V fma(V a, V b, V c) { return multiply_add(a, b, c); }
  static HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
  static HWY_INLINE V sqrt(V x) { return hn::Sqrt(x); }
  static HWY_INLINE V abs(V x) { return hn::Abs(x); }
  static HWY_INLINE V min(V a, V b) { return hn::Min(a, b); }
  static HWY_INLINE V nearest(V x) { return hn::Round(x); }
  static HWY_INLINE V power_of_two(V x) {
    return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(Integers(), x), integers(127))));
  }
  static HWY_INLINE V select_below(V a, V b, V yes, V no) { return hn::IfThenElse(hn::Lt(a, b), yes, no); }
  static HWY_INLINE V copy_sign(V size, V sign) { return hn::CopySign(size, sign); }
  static HWY_INLINE V number_or_zero(V x) { return hn::IfThenZeroElse(hn::IsNaN(x), x); }
  static HWY_INLINE V nan_or(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }
  static HWY_INLINE V mantissa(V x) {
    const auto bits = hn::And(hn::BitCast(Integers(), x), integers(0x007FFFFF));
    return hn::BitCast(D(), hn::Or(bits, integers(0x3F800000)));
  }
  static HWY_INLINE V exponent(V x) {
    return hn::ConvertTo(D(), hn::Sub(hn::ShiftRight<23>(hn::BitCast(Integers(), x)), integers(127)));
  }
  static HWY_INLINE hn::Vec<Integers> integers(std::int32_t x) { return hn::Set(Integers(), x); }
};

#define LOCKSTEP_LANES HWY_INLINE
#include "kernels/numerics/activation_math.inc"
#include "kernels/numerics/exp_log.inc"
#undef LOCKSTEP_LANES

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
