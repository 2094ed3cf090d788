// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SIMD vocabulary of the kernels: 16 samples are one line, at any vector length.
///
/// Compiled once for each instruction set (Highway's foreach_target), so the guard is toggled.
#include "hwy/highway.h"
#include "kernels/cpu/multiply_add_inl.hpp"
#include "kernels/cpu/operands.hpp"
#include "kernels/cpu/ops.hpp"

#include <cstddef>

#if defined(LOCKSTEP_CPU_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_LANES_INL_HPP
#undef LOCKSTEP_CPU_LANES_INL_HPP
#else
#define LOCKSTEP_CPU_LANES_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// Samples in a line.
inline constexpr std::size_t kLine = kLanes;

/// The longest vector of floats that divides a line.
using LaneTag = hn::CappedTag<float, kLine>;
using Lanes = hn::Vec<LaneTag>;
inline constexpr LaneTag kTag{};
inline constexpr std::size_t kVector = HWY_LANES(float);  ///< floats in a vector
inline constexpr std::size_t kParts = kLine / kVector;    ///< vectors in a line

/// True if a register tile may use up to 31 registers (AVX-512, NEON), not 16.
inline constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;

#if HWY_TARGET == HWY_SCALAR

/// Computes what its version for longer vectors below does, by the same tree.
HWY_INLINE void sum_4_lines(const float* l, const float* o, float* sums) {
  for (std::size_t i = 0; i < 4; ++i) {
    float block[4];
    for (std::size_t m = 0; m < 4; ++m, l += 4, o += 4)
      block[m] = ((l[0] + o[0]) + (l[1] + o[1])) + ((l[2] + o[2]) + (l[3] + o[3]));
    sums[i] = (block[0] + block[2]) + (block[1] + block[3]);
  }
}

/// 4 x 4 floats: to[j][i] = from[i][j].
HWY_INLINE void transpose_4x4(const float* from, std::size_t from_stride, float* to, std::size_t to_stride) {
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

#else

/// Four floats.
using BlockTag = hn::FixedTag<float, 4>;

/// A vector of whole blocks → its blocks added up: upper half to lower half, until one is left.
template <class V>
HWY_INLINE hn::Vec<BlockTag> sum_blocks(V v) {
  if constexpr (sizeof(V) == 16) {
    return v;
  } else {
    const hn::DFromV<V> d;
    const hn::Half<decltype(d)> half;
    return sum_blocks(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// In each block of four lanes, lane i is (a0 + a1) + (a2 + a3) of the i-th argument.
template <class V>
HWY_INLINE V sum_within_blocks(V a, V b, V c, V e) {
  const hn::DFromV<V> d;
  const V ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const V be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
  const V first = hn::Add(hn::InterleaveLower(d, ac_low, be_low), hn::InterleaveUpper(d, ac_low, be_low));
  const V second =
      hn::Add(hn::InterleaveLower(d, ac_high, be_high), hn::InterleaveUpper(d, ac_high, be_high));
  return hn::Add(first, second);
}

/// sums[i] = sum of lines[i][0..16) and others[i][0..16), for 4 lines. Partners of both first, then lanes by the tree
/// (0 + 1) + (2 + 3) within each block of four, then blocks by the tree (0 + 2) + (1 + 3).
HWY_INLINE void sum_4_lines(const float* lines, const float* others, float* sums) {
  Lanes part[kParts];
  LOCKSTEP_UNROLL
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto both = [&](std::size_t i) HWY_ATTR {
      const std::size_t at = i * kLine + p * kVector;
      return hn::Add(hn::LoadU(kTag, lines + at), hn::LoadU(kTag, others + at));
    };
    part[p] = sum_within_blocks(both(0), both(1), both(2), both(3));
  }
  LOCKSTEP_UNROLL
  for (std::size_t width = kParts / 2; width > 0; width /= 2) {
    for (std::size_t p = 0; p < width; ++p) part[p] = hn::Add(part[p], part[p + width]);
  }
  hn::StoreU(sum_blocks(part[0]), BlockTag(), sums);
}

/// 4 x 4 floats: to[j][i] = from[i][j].
HWY_INLINE void transpose_4x4(const float* from, std::size_t from_stride, float* to, std::size_t to_stride) {
  const BlockTag d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac_low, be_low), d, to);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, ac_high, be_high), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, to + 3 * to_stride);
}

#endif  // HWY_TARGET == HWY_SCALAR

/// sums[i] = the sum of the 32 lanes of lines[i] and others[i], for `count` lines that follow one another. The tree is
/// lane_distance()'s. Both are readable up to a multiple of 4 lines.
HWY_INLINE void sum_lines(const float* lines, const float* others, std::size_t count, float* sums) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) sum_4_lines(lines + i * kLine, others + i * kLine, sums + i);
  if (i == count) return;
  float rest[4];
  sum_4_lines(lines + i * kLine, others + i * kLine, rest);
  for (std::size_t j = 0; i + j < count; ++j) sums[i + j] = rest[j];
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
