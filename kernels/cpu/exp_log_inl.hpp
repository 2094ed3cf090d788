// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of kernels/numerics/exp_log.inc for vectors of samples, compiled once for each SIMD target.
#include "kernels/cpu/activation_math_inl.hpp"

#if defined(LOCKSTEP_CPU_EXP_LOG_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_EXP_LOG_INL_HPP
#undef LOCKSTEP_CPU_EXP_LOG_INL_HPP
#else
#define LOCKSTEP_CPU_EXP_LOG_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

#define LOCKSTEP_LANES HWY_INLINE
#include "kernels/numerics/exp_log.inc"
#undef LOCKSTEP_LANES

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
