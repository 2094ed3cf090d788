// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loop of every elementwise op, compiled once for each SIMD target: include after highway.h.

#if defined(LOCKSTEP_CPU_FOR_EACH_VECTOR_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_FOR_EACH_VECTOR_INL_HPP
#undef LOCKSTEP_CPU_FOR_EACH_VECTOR_INL_HPP
#else
#define LOCKSTEP_CPU_FOR_EACH_VECTOR_INL_HPP
#endif

#include "hwy/highway.h"

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) for vectors of numbers that together cover [0, size): whole ones, then single lanes.
/// Lanes must not interact, so that bits do not depend on how the range is cut.
template <class Number = float, class Body>
HWY_INLINE void for_each_vector(std::size_t size, const Body& body) {
  const hn::CappedTag<Number, 64 / sizeof(Number)> whole;
  const hn::CappedTag<Number, 1> single;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) body(whole, i);
  for (; i < size; ++i) body(single, i);
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
