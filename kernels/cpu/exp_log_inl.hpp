// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exponential and logarithm of float vectors, Highway's, made to pass NaN on; compiled once for each SIMD
/// target.

#if defined(LOCKSTEP_CPU_EXP_LOG_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_EXP_LOG_INL_HPP
#undef LOCKSTEP_CPU_EXP_LOG_INL_HPP
#else
#define LOCKSTEP_CPU_EXP_LOG_INL_HPP
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// e^x for x <= 0, -infinity included, and NaN for NaN; within 1 unit in the last place.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp_or_nan(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// ln(x) for finite x > 0, and NaN for NaN; within 4 units in the last place.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V log_or_nan(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Log(d, x));
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
