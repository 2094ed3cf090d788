// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "vnni": weight gradients of few pixels, or of batches that are no whole vectors. A vector is 16 filters,
/// and dy is packed so; two or four neighbouring samples of x are multiplied with all of them.
#include "kernels/cpu/int16/engines.hpp"

#if defined(__x86_64__)
#include "kernels/cpu/int16/vnni_inl.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {
namespace {

/// Sums in registers: taps times vectors of filters.
constexpr std::size_t kMostTaps = 12, kMostVectors = 2, kFilters = 16;
/// A line is 16 samples of a pixel: eight pairs, four quads.
constexpr std::size_t kSamples = 16, kPairs = kSamples / 2, kQuads = kSamples / 4;
constexpr std::size_t kMostLines = kMostQuads / kQuads;
/// Sums of so many lines are kept in 32 bits, in two parts.
constexpr std::size_t kLinesOfParts = 4096;
static_assert(kLinesOfParts * kSamples * (std::int64_t{1} << 14) < (std::int64_t{1} << 31));

/// Some lines, and dy of some filters there.
struct PackedLines {
  std::size_t count = 0, vectors = 0;
  std::size_t at_x[kMostLines], at_dy[kMostLines];
  alignas(64) std::int32_t pairs[kMostLines * kPairs * kMostVectors * kFilters];   ///< [line][pair][filter]
  alignas(64) std::int32_t digits[kMostLines * kQuads * kMostVectors * kFilters];  ///< [line][quad][filter]
  __m512i excess[kMostVectors];  ///< 128 times all digits of a filter

  void pack(const GroupGradient& gradient, std::size_t first_filter, std::size_t some_vectors);
};

/// Transposes 16 x 16 numbers; the last four rows are not wanted.
HWY_INLINE void transpose(const __m512i (&from)[kFilters], __m512i (&to)[kPairs + kQuads]) {
  __m512i blocks[4][4];  // four rows, a column of each four
  LOCKSTEP_UNROLL
  for (std::size_t g = 0; g < 4; ++g) {
    const __m512i* const rows = from + 4 * g;
    const __m512i low01 = _mm512_unpacklo_epi32(rows[0], rows[1]),
                  high01 = _mm512_unpackhi_epi32(rows[0], rows[1]),
                  low23 = _mm512_unpacklo_epi32(rows[2], rows[3]),
                  high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
    blocks[g][0] = _mm512_unpacklo_epi64(low01, low23);
    blocks[g][1] = _mm512_unpackhi_epi64(low01, low23);
    blocks[g][2] = _mm512_unpacklo_epi64(high01, high23);
    blocks[g][3] = _mm512_unpackhi_epi64(high01, high23);
  }
  LOCKSTEP_UNROLL
  for (std::size_t c = 0; c < 4; ++c) {
    const __m512i even01 = _mm512_shuffle_i32x4(blocks[0][c], blocks[1][c], 0x88),
                  even23 = _mm512_shuffle_i32x4(blocks[2][c], blocks[3][c], 0x88),
                  odd01 = _mm512_shuffle_i32x4(blocks[0][c], blocks[1][c], 0xDD),
                  odd23 = _mm512_shuffle_i32x4(blocks[2][c], blocks[3][c], 0xDD);
    to[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    to[4 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    to[8 + c] = _mm512_shuffle_i32x4(even01, even23, 0xDD);
  }
}

void PackedLines::pack(const GroupGradient& gradient, std::size_t first_filter, std::size_t some_vectors) {
  const GradientShape& g = gradient.shape;
  vectors = some_vectors;
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::size_t filter = first_filter + v * kFilters, filters = std::min(kFilters, g.filters - filter);
    const float* const dy = gradient.dy + filter * g.dy_channel;
    excess[v] = _mm512_setzero_si512();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t n = at_dy[i] % g.batch;
      const __m512 first = _mm512_loadu_ps(gradient.of_dy.first.data() + n),
                   second = _mm512_loadu_ps(gradient.of_dy.second.data() + n);
      __m512i rows[kFilters], columns[kPairs + kQuads];
      for (std::size_t k = 0; k < kFilters; ++k) {
        rows[k] = _mm512_setzero_si512();
        if (k >= filters) continue;
        const __m512i q = round_vector(dy + k * g.dy_channel + at_dy[i], first, second);
        const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
        rows[k] = _mm512_inserti32x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(q)),
                                     _mm512_cvtepi32_epi8(high), 2);
      }
      transpose(rows, columns);
      LOCKSTEP_UNROLL
      for (std::size_t j = 0; j < kPairs; ++j)
        _mm512_store_si512(pairs + ((i * kPairs + j) * vectors + v) * kFilters, columns[j]);
      LOCKSTEP_UNROLL
      for (std::size_t j = 0; j < kQuads; ++j) {
        _mm512_store_si512(digits + ((i * kQuads + j) * vectors + v) * kFilters, columns[kPairs + j]);
        excess[v] = add_128_times(excess[v], columns[kPairs + j]);
      }
    }
  }
}

/// Sums [tap][vector] over lines of pairs or of quads of `Number`s.
template <std::size_t T, std::size_t V, class Number>
HWY_NOINLINE void sum_lines(const PackedLines& lines, const Number* x, const std::size_t* tap,
                            const std::int32_t* dy, __m512i* sums) {
  constexpr std::size_t kAtOnce = sizeof(std::int32_t) / sizeof(Number);
  __m512i sum[T][V];
  LOCKSTEP_UNROLL
  for (std::size_t t = 0; t < T; ++t) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) sum[t][v] = _mm512_setzero_si512();
  }
  for (std::size_t i = 0; i < lines.count; ++i) {
    const Number* line = x + lines.at_x[i];
    for (const Number* const end = line + kSamples; line != end; line += kAtOnce, dy += V * kFilters) {
      __m512i gradient[V];
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) gradient[v] = _mm512_load_si512(dy + v * kFilters);
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        std::int32_t some;
        std::memcpy(&some, line + tap[t], sizeof some);
        const __m512i number = _mm512_set1_epi32(some);
        LOCKSTEP_UNROLL
        for (std::size_t v = 0; v < V; ++v) {
          if constexpr (kAtOnce == 2)
            sum[t][v] = _mm512_dpwssd_epi32(sum[t][v], number, gradient[v]);
          else
            sum[t][v] = _mm512_dpbusd_epi32(sum[t][v], number, gradient[v]);
        }
      }
    }
  }
  LOCKSTEP_UNROLL
  for (std::size_t t = 0; t < T; ++t) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) _mm512_store_si512(sums + t * V + v, sum[t][v]);
  }
}

/// Adds to the parts of sums, 65536 times the upper one and the lower one: [tap][upper, lower][filter].
template <std::size_t T, std::size_t V>
void add_lines(const PackedLines& lines, const PackedImage& x, const std::size_t* tap, std::int32_t* parts) {
  __m512i low[T * V], high[T * V];
  sum_lines<T, V>(lines, x.numbers, tap, lines.pairs, low);
  sum_lines<T, V>(lines, x.digits, tap, lines.digits, high);
  for (std::size_t t = 0; t < T; ++t) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      std::int32_t *const upper = parts + (2 * t * V + v) * kFilters, *const lower = upper + V * kFilters;
      const __m512i sum = low[t * V + v], digits = _mm512_sub_epi32(high[t * V + v], lines.excess[v]);
      _mm512_store_si512(upper, _mm512_add_epi32(_mm512_load_si512(upper), upper_part(sum, digits)));
      _mm512_store_si512(lower, _mm512_add_epi32(_mm512_load_si512(lower), lower_part(sum)));
    }
  }
}

/// High digits + 128 of numbers; sizes are multiples of 16.
void write_digits(const std::int16_t* numbers, std::size_t size, std::uint8_t* digits) {
  for (std::size_t i = 0; i < size; i += 16) {
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + i));
    const __m256i high = _mm256_srli_epi16(_mm256_add_epi16(some, _mm256_set1_epi16(128)), 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(digits + i),
                     _mm_xor_si128(_mm256_cvtepi16_epi8(high), _mm_set1_epi8(static_cast<char>(0x80))));
  }
}

/// Writes or adds the parts of `width` filters, some taps at a time, so that they stay in the cache.
void add_totals(const std::int32_t* parts, std::size_t width, bool writes, std::size_t first,
                const GroupGradient& gradient) {
  constexpr std::size_t kTapsAtOnce = 16;
  const std::size_t taps = gradient.shape.taps.size(),
                    filters = std::min(width, gradient.shape.filters - first);
  for (std::size_t tap = 0; tap < taps; tap += kTapsAtOnce) {
    for (std::size_t k = 0; k < filters; ++k) {
      std::int64_t* const totals = gradient.totals + (first + k) * taps;
      for (std::size_t t = tap; t < std::min(taps, tap + kTapsAtOnce); ++t) {
        const std::int32_t *const upper = parts + 2 * t * width + k, *const lower = upper + width;
        totals[t] = (writes ? 0 : totals[t]) + std::int64_t{*upper} * 65536 + *lower;
      }
    }
  }
}

/// Some filters, as many as vectors hold.
void sum_filters(const GroupGradient& gradient, const PackedImage& x, std::size_t first, std::size_t vectors,
                 PackedLines& lines, std::int32_t* parts) {
  static constexpr auto kLines = make_table<kMostVectors>(
      [](auto v) { return make_table<kMostTaps>([v](auto t) { return &add_lines<t, v>; }); });
  const GradientShape& g = gradient.shape;
  const std::size_t taps = g.taps.size(), width = vectors * kFilters,
                    all = g.rows * g.columns * g.batch / kSamples;
  for (std::size_t begin = 0; begin < all; begin += kLinesOfParts) {
    const std::size_t end = std::min(all, begin + kLinesOfParts);
    std::fill_n(parts, 2 * taps * width, 0);
    for (std::size_t line = begin; line < end; line += kMostLines) {
      lines.count = std::min(end - line, kMostLines);
      find_places(g, line, lines.count, kSamples, lines.at_x, lines.at_dy);
      lines.pack(gradient, first, vectors);
      for_each_block(taps, kMostTaps, [&](std::size_t tap, std::size_t size) {
        kLines[vectors - 1][size - 1](lines, x, g.taps.data() + tap, parts + 2 * tap * width);
      });
    }
    add_totals(parts, width, begin == 0, first, gradient);
  }
}

}  // namespace

void sum_gradients(const GroupGradient& gradient) {
  constexpr std::size_t kFewestFilters = 5;  // that pay for 16 lanes
  constexpr std::size_t kFewestSteps = 8;    // that pay for sums over lanes
  const GradientShape& g = gradient.shape;
  const bool fills_vectors = g.filters % (kMostVectors * kFilters) == 0;
  const std::size_t steps = g.batch % kSamplesOfStep == 0 ? g.rows * g.columns * g.batch / kSamplesOfStep : 0;
  if (!fills_vectors && steps >= kFewestSteps) return sum_gradients_of_samples(gradient);
  if (g.filters < kFewestFilters) return kDoubles.sum_gradients(gradient);
  const std::size_t image = gradient.image.channels * gradient.image.channel();
  auto* const numbers = scratch<std::int16_t, ScratchUse::kSource>(image);
  auto* const digits = scratch<std::uint8_t, ScratchUse::kRounded>(image);
  round_image(gradient.image, gradient.x, gradient.of_x, numbers);
  write_digits(numbers, image, digits);
  auto* const lines = scratch<PackedLines, ScratchUse::kGradient>(1);
  auto* const parts = scratch<std::int32_t, ScratchUse::kSums>(2 * g.taps.size() * kMostVectors * kFilters);
  for (std::size_t k = 0; k < g.filters; k += kMostVectors * kFilters)
    sum_filters(gradient, {numbers, digits}, k, g.filters - k > kFilters ? 2 : 1, *lines, parts);
}

}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES

#endif
