// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The arithmetic of the engine "vnni": sums of products of 16-bit numbers, three multiply-adds for four products.
///
/// vpdpwssd gives the sum modulo 2^32, two products at a time. vpdpbusd gives the sum of products of high digits, four
/// at a time; times 2^16 it is less than 2^31 away from the sum, for kMostQuads steps. Both together are the sum.
/// Numbers are q = 256 high + low, -128 <= low < 128. vpdpbusd wants one side without a sign: it is high + 128, and the
/// sum of 128 times the other side is subtracted.
#pragma once

#include "hwy/base.h"
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/int16/x86_intrinsics.hpp"

#include <cstddef>
#include <cstdint>

#ifndef LOCKSTEP_VNNI  // tests have vectors in memory
#define LOCKSTEP_VNNI "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#define LOCKSTEP_VNNI_KEEP(vector) asm("" : "+v"(vector))
#endif

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {

inline constexpr std::size_t kVectorColumns = 16;
/// Four products at a time.
inline constexpr std::size_t kMostQuads = 64;
/// The largest distance of 256 (high low' + low high') + low low' from 0.
inline constexpr std::int64_t kMostAway = std::int64_t{256} * 2 * 127 * 128 + 128 * 128;
static_assert(4 * kMostQuads * kMostAway < (std::int64_t{1} << 31));

/// x in its frame: numbers, and high digits + 128.
struct PackedImage {
  const std::int16_t* numbers;
  const std::uint8_t* digits;
};

/// 16 rounded numbers.
HWY_INLINE __m512i round_vector(const float* x, __m512 first, __m512 second) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x), first), second));
}

/// So that the upper byte of each number is its high digit.
HWY_INLINE __m512i add_half(__m512i numbers) {
  return _mm512_add_epi16(numbers, _mm512_set1_epi16(128));
}
/// High digits of two pairs, with signs: even 0, odd 0, even 1, odd 1 in the weights' order.
HWY_INLINE __m512i high_digits(__m512i even, __m512i odd) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFF00FF00));
  return _mm512_or_si512(_mm512_and_si512(upper, add_half(odd)),
                         _mm512_andnot_si512(upper, _mm512_srli_epi32(add_half(even), 8)));
}
/// Digits + 128.
HWY_INLINE __m512i without_sign(__m512i digits) {
  return _mm512_xor_si512(digits, _mm512_set1_epi32(static_cast<int>(0x80808080)));
}
/// 128 times four digits, added to each sum.
HWY_INLINE __m512i add_128_times(__m512i sum, __m512i digits) {
  return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(static_cast<int>(0x80808080)), digits);
}

/// The two parts of sums: 65536 times the upper one, and the lower one.
/// @param low     the sums modulo 2^32
/// @param digits  the sums of products of high digits
HWY_INLINE __m512i upper_part(__m512i low, __m512i digits) {
  const __m512i rest = _mm512_sub_epi32(low, _mm512_slli_epi32(digits, 16));
  return _mm512_add_epi32(digits, _mm512_srai_epi32(rest, 16));
}
HWY_INLINE __m512i lower_part(__m512i low) {
  return _mm512_and_si512(low, _mm512_set1_epi32(0xFFFF));
}

/// Places in x and dy of `count` lines of so many samples. Line `first` is counted by samples, columns and rows.
inline void find_places(const GradientShape& g, std::size_t first, std::size_t count, std::size_t samples,
                        std::size_t* at_x, std::size_t* at_dy) {
  const std::size_t of_pixel = g.batch / samples;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t pixel = (first + i) / of_pixel, n = (first + i) % of_pixel * samples;
    const std::size_t p = pixel / g.columns, q = pixel % g.columns;
    at_x[i] = p * g.x_row + q * g.x_column + n;
    at_dy[i] = p * g.dy_row + q * g.batch + n;
  }
}

/// The weight gradient.
void sum_gradients(const GroupGradient& gradient);
/// The weight gradient with samples as lanes, for a batch of whole steps.
void sum_gradients_of_samples(const GroupGradient& gradient);
inline constexpr std::size_t kSamplesOfStep = 64;

}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES
