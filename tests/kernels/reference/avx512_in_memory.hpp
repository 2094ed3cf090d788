// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The intrinsics of AVX-512 that the engine "vnni" uses, as Intel's manual defines them, lane after lane. A source of
/// that engine which is compiled with this header first runs on processors that have none: its calls find these
/// functions, in its own namespace, before those of g++.
#pragma once

#include "hwy/base.h"
#include "kernels/cpu/int16/x86_intrinsics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

// Instructions that are not done here.
#define LOCKSTEP_VNNI "avx2,fma"
#define LOCKSTEP_VNNI_KEEP(vector) static_cast<void>(vector)

// Macros where a compiler does not optimise, or is clang.
#undef _mm512_inserti32x4
#undef _mm512_setr_epi32
#undef _mm512_shuffle_i32x4
#undef _mm512_slli_epi32
#undef _mm512_srai_epi32
#undef _mm512_srli_epi32

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {

/// std::bit_cast, whose instantiation for vectors of 32 bytes would return them in another way.
template <class To, class From>
To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class Lane, class Vector = __m512i>
using LanesOf = std::array<Lane, sizeof(Vector) / sizeof(Lane)>;
/// Four numbers of 32 bits, within which many instructions stay.
using Block = std::array<std::uint32_t, 4>;

template <class Lane, class Vector>
LanesOf<Lane, Vector> lanes(const Vector& vector) {
  return same_bits<LanesOf<Lane, Vector>>(vector);
}
/// Makes a vector of find(lane).
template <class Lane, class Vector = __m512i>
Vector vector_of(const auto& find) {
  LanesOf<Lane, Vector> result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<Lane>(find(i));
  return same_bits<Vector>(result);
}
template <class Lane, class Vector>
Vector map(const Vector& a, const Vector& b, const auto& operation) {
  const auto x = lanes<Lane>(a), y = lanes<Lane>(b);
  return vector_of<Lane, Vector>([&](std::size_t i) { return operation(x[i], y[i]); });
}
constexpr auto kSum = [](auto a, auto b) { return a + b; };

// Memory. A processor ends the program at an aligned access that is none.

template <class Number>
Number* aligned(Number* place) {
  if (reinterpret_cast<std::uintptr_t>(place) % sizeof(__m512i) != 0) throw std::logic_error("not aligned");
  return place;
}
template <class Vector>
Vector read(const void* place) {
  Vector vector;
  std::memcpy(&vector, place, sizeof vector);
  return vector;
}
inline __m512i _mm512_loadu_si512(const void* place) {
  return read<__m512i>(place);
}
inline __m512i _mm512_load_si512(const void* place) {
  return read<__m512i>(aligned(place));
}
inline __m512 _mm512_loadu_ps(const void* place) {
  return read<__m512>(place);
}
inline __m512 _mm512_load_ps(const void* place) {
  return read<__m512>(aligned(place));
}
inline void _mm512_storeu_si512(void* place, __m512i a) {
  std::memcpy(place, &a, sizeof a);
}
inline void _mm512_store_si512(void* place, __m512i a) {
  std::memcpy(aligned(place), &a, sizeof a);
}
inline void _mm512_storeu_ps(void* place, __m512 a) {
  std::memcpy(place, &a, sizeof a);
}

// Bits.

inline __m512i _mm512_setzero_si512() {
  return __m512i{};
}
inline __m512i _mm512_and_si512(__m512i a, __m512i b) {
  return a & b;
}
inline __m512i _mm512_or_si512(__m512i a, __m512i b) {
  return a | b;
}
inline __m512i _mm512_xor_si512(__m512i a, __m512i b) {
  return a ^ b;
}
inline __m512i _mm512_andnot_si512(__m512i a, __m512i b) {
  return ~a & b;
}
inline __m512i _mm512_slli_epi32(__m512i a, unsigned bits) {
  return vector_of<std::uint32_t>([&](std::size_t i) { return lanes<std::uint32_t>(a)[i] << bits; });
}
inline __m512i _mm512_srli_epi32(__m512i a, unsigned bits) {
  return vector_of<std::uint32_t>([&](std::size_t i) { return lanes<std::uint32_t>(a)[i] >> bits; });
}
inline __m512i _mm512_srai_epi32(__m512i a, unsigned bits) {
  return vector_of<std::int32_t>([&](std::size_t i) { return lanes<std::int32_t>(a)[i] >> bits; });
}

// Integers, modulo their size.

inline __m512i _mm512_set1_epi32(int number) {
  return vector_of<std::int32_t>([&](std::size_t) { return number; });
}
inline __m512i _mm512_set1_epi16(short number) {
  return vector_of<std::int16_t>([&](std::size_t) { return number; });
}
template <class... Numbers>
__m512i _mm512_setr_epi32(Numbers... numbers) {
  return same_bits<__m512i>(LanesOf<std::int32_t>{numbers...});
}
inline __m512i _mm512_add_epi16(__m512i a, __m512i b) {
  return map<std::uint16_t>(a, b, kSum);
}
inline __m512i _mm512_add_epi32(__m512i a, __m512i b) {
  return map<std::uint32_t>(a, b, kSum);
}
inline __m512i _mm512_add_epi64(__m512i a, __m512i b) {
  return map<std::uint64_t>(a, b, kSum);
}
inline __m512i _mm512_sub_epi32(__m512i a, __m512i b) {
  return map<std::uint32_t>(a, b, [](auto x, auto y) { return x - y; });
}

/// The sums and the products of numbers in the same 32 bits, each of its own size.
template <class A, class B>
__m512i add_products(__m512i sums, __m512i a, __m512i b) {
  const auto x = lanes<A>(a);
  const auto y = lanes<B>(b);
  auto result = lanes<std::uint32_t>(sums);
  for (std::size_t i = 0; i < x.size(); ++i)
    result[i * sizeof(A) / sizeof(std::uint32_t)] += static_cast<std::uint32_t>(std::int32_t{x[i]} * y[i]);
  return same_bits<__m512i>(result);
}
inline __m512i _mm512_dpwssd_epi32(__m512i sums, __m512i a, __m512i b) {
  return add_products<std::int16_t, std::int16_t>(sums, a, b);
}
inline __m512i _mm512_dpbusd_epi32(__m512i sums, __m512i a, __m512i b) {
  return add_products<std::uint8_t, std::int8_t>(sums, a, b);
}

// Other sizes.

/// The last bits of each number.
template <class Lane, class Half>
Half shortened(__m512i a) {
  return vector_of<Lane, Half>([&](std::size_t i) { return lanes<std::int32_t>(a)[i]; });
}
inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
  return shortened<std::int16_t, __m256i>(a);
}
inline __m128i _mm512_cvtepi32_epi8(__m512i a) {
  return shortened<std::int8_t, __m128i>(a);
}
inline __m128i _mm256_cvtepi16_epi8(__m256i a) {
  return vector_of<std::int8_t, __m128i>([&](std::size_t i) { return lanes<std::int16_t>(a)[i]; });
}
/// The nearest numbers of 16 bits: in each block four of a, then four of b.
inline __m512i _mm512_packs_epi32(__m512i a, __m512i b) {
  using Limits = std::numeric_limits<std::int16_t>;
  return vector_of<std::int16_t>([&](std::size_t i) {
    const std::size_t from = i / 8 * 4 + i % 4;
    const std::int32_t number = i % 8 < 4 ? lanes<std::int32_t>(a)[from] : lanes<std::int32_t>(b)[from];
    return std::min<std::int32_t>(std::max<std::int32_t>(number, Limits::min()), Limits::max());
  });
}
/// The nearest integers, half to even; the least one for a number that is beyond 32 bits or none.
inline __m512i _mm512_cvtps_epi32(__m512 a) {
  return vector_of<std::int32_t>([&](std::size_t i) {
    const float number = lanes<float>(a)[i];
    return std::abs(number) < 0x1p31F ? static_cast<std::int32_t>(std::nearbyint(number))
                                      : std::numeric_limits<std::int32_t>::min();
  });
}
inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  return vector_of<float, __m512>([&](std::size_t i) { return lanes<std::int32_t>(a)[i]; });
}
inline __m256 _mm512_cvtepi64_ps(__m512i a) {
  return vector_of<float, __m256>([&](std::size_t i) { return lanes<std::int64_t>(a)[i]; });
}

// Floating-point numbers.

inline __m512 _mm512_set1_ps(float number) {
  return vector_of<float, __m512>([&](std::size_t) { return number; });
}
inline __m512 _mm512_add_ps(__m512 a, __m512 b) {
  return map<float>(a, b, kSum);
}
inline __m512 _mm512_mul_ps(__m512 a, __m512 b) {
  return map<float>(a, b, [](float x, float y) { return x * y; });
}
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return vector_of<float, __m512>(
      [&](std::size_t i) { return std::fma(lanes<float>(a)[i], lanes<float>(b)[i], lanes<float>(c)[i]); });
}

// Places.

/// Upper halves are anything; here all bits are 1.
template <class Whole, class Half>
Whole widened(const Half& half) {
  Whole whole;
  std::memset(&whole, 0xFF, sizeof whole);
  std::memcpy(&whole, &half, sizeof half);
  return whole;
}
inline __m512i _mm512_castsi256_si512(__m256i half) {
  return widened<__m512i>(half);
}
inline __m512 _mm512_castps256_ps512(__m256 half) {
  return widened<__m512>(half);
}

/// Numbers of a (0 to 15) and b (16 to 31) at these places.
template <class Vector>
Vector chosen(const Vector& a, __m512i places, const Vector& b) {
  const auto x = lanes<std::uint32_t>(a), y = lanes<std::uint32_t>(b), at = lanes<std::uint32_t>(places);
  return vector_of<std::uint32_t, Vector>(
      [&](std::size_t i) { return (at[i] & 16U) != 0 ? y[at[i] & 15U] : x[at[i] & 15U]; });
}
inline __m512i _mm512_permutexvar_epi32(__m512i places, __m512i a) {
  return chosen(a, places, a);
}
inline __m512 _mm512_permutex2var_ps(__m512 a, __m512i places, __m512 b) {
  return chosen(a, places, b);
}

/// The first or the last halves of each block of a and of b, their numbers in turns.
template <class Lane>
__m512i interleaved(__m512i a, __m512i b, bool are_last) {
  constexpr std::size_t kOfBlock = sizeof(Block) / sizeof(Lane);
  return vector_of<Lane>([&](std::size_t i) {
    const std::size_t from = i / kOfBlock * kOfBlock + i % kOfBlock / 2 + (are_last ? kOfBlock / 2 : 0);
    return i % 2 == 0 ? lanes<Lane>(a)[from] : lanes<Lane>(b)[from];
  });
}
inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) {
  return interleaved<std::uint32_t>(a, b, false);
}
inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) {
  return interleaved<std::uint32_t>(a, b, true);
}
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  return interleaved<std::uint64_t>(a, b, false);
}
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  return interleaved<std::uint64_t>(a, b, true);
}

/// Two blocks of a, then two of b: two bits say which.
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, unsigned which) {
  const auto x = lanes<Block>(a), y = lanes<Block>(b);
  return same_bits<__m512i>(
      LanesOf<Block>{x[which & 3U], x[which >> 2U & 3U], y[which >> 4U & 3U], y[which >> 6U & 3U]});
}
inline __m512i _mm512_inserti32x4(__m512i a, __m128i block, unsigned place) {
  auto blocks = lanes<Block>(a);
  blocks[place & 3U] = same_bits<Block>(block);
  return same_bits<__m512i>(blocks);
}

}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES
