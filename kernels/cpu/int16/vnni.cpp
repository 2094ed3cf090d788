// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "vnni": vpdpwssd adds two products of 16-bit numbers and 8-bit digits to each of 16 sums of 32 bits. As
/// many multiply-adds at a time as fp32, since a weight has two digits.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/simd_choice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include "hwy/base.h"

#ifndef __clang__  // g++ 12 warns of operands in its header that are meant to be anything (its bug 105593)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/// Placed before a loop over registers.
#ifdef __clang__
#define LOCKSTEP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LOCKSTEP_UNROLL _Pragma("GCC unroll 32")
#endif

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace lockstep::cpu::int16 {
namespace {

/// A sum of 32 bits holds so many pairs of products below 32,768 * 128.
constexpr std::size_t kMostSteps = 256;
constexpr std::size_t kVectorColumns = 16;
static_assert(2 * kMostSteps * (std::int64_t{1} << 22) <= (std::int64_t{1} << 31));

using Call = PixelCall<std::int32_t, std::int32_t>;

/// Sums of high and of low digits: 256 high + low.
struct DigitSums {
  __m512i high, low;

  HWY_INLINE void clear() { high = low = _mm512_setzero_si512(); }
  HWY_INLINE __m512d half(int which) const {
    const __m256i of_high = which == 0 ? _mm512_castsi512_si256(high) : _mm512_extracti64x4_epi64(high, 1);
    const __m256i of_low = which == 0 ? _mm512_castsi512_si256(low) : _mm512_extracti64x4_epi64(low, 1);
    return _mm512_fmadd_pd(_mm512_cvtepi32_pd(of_high), _mm512_set1_pd(256), _mm512_cvtepi32_pd(of_low));
  }
};

template <std::size_t K, std::size_t V>
struct PixelTile {
  DigitSums sums[K][V];
  __m512d totals[K][V][2];
  std::size_t left = kMostSteps;

  HWY_INLINE void begin() {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        sums[k][v].clear();
        totals[k][v][0] = totals[k][v][1] = _mm512_setzero_pd();
      }
    }
  }

  HWY_INLINE void flush() {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        LOCKSTEP_UNROLL
        for (int half = 0; half < 2; ++half)
          totals[k][v][half] = _mm512_add_pd(totals[k][v][half], sums[k][v].half(half));
        sums[k][v].clear();
      }
    }
    left = kMostSteps;
  }

  HWY_INLINE void add_row(const std::int32_t* source, const std::int32_t* weights, const TapGrid& taps) {
    for (std::size_t s = 0; s < taps.columns;) {
      const std::size_t some = std::min(taps.columns - s, left);
      for (std::size_t i = 0; i < some; ++i, source += taps.source_column, weights += taps.weight_column) {
        __m512i x[V];
        LOCKSTEP_UNROLL
        for (std::size_t v = 0; v < V; ++v) x[v] = _mm512_loadu_si512(source + v * kVectorColumns);
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) {
          const __m512i high = _mm512_set1_epi32(weights[k]), low = _mm512_set1_epi32(weights[K + k]);
          LOCKSTEP_UNROLL
          for (std::size_t v = 0; v < V; ++v) {
            sums[k][v].high = _mm512_dpwssd_epi32(sums[k][v].high, x[v], high);
            sums[k][v].low = _mm512_dpwssd_epi32(sums[k][v].low, x[v], low);
          }
        }
      }
      s += some;
      left -= some;
      if (left == 0) flush();
    }
  }

  HWY_INLINE void store(const Call& call) {
    flush();
    float* target = call.target;
    for (std::size_t k = 0; k < K; ++k, target += call.target_step) {
      const __m512 bias = _mm512_set1_ps(call.bias == nullptr ? 0.0F : call.bias[k]);
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        const double* units = call.units + v * kVectorColumns;
        const __m256 first = _mm512_cvtpd_ps(_mm512_mul_pd(totals[k][v][0], _mm512_loadu_pd(units)));
        const __m256 second = _mm512_cvtpd_ps(_mm512_mul_pd(totals[k][v][1], _mm512_loadu_pd(units + 8)));
        const __m512 both = _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
        _mm512_storeu_ps(target + v * kVectorColumns, _mm512_add_ps(both, bias));
      }
    }
  }
};

template <std::size_t K, std::size_t V>
void run_pixel(const Call& call) {
  PixelTile<K, V> tile;
  tile.begin();
  const TapGrid& taps = call.taps;
  for (std::size_t c = 0; c < taps.channels; ++c) {
    for (std::size_t r = 0; r < taps.rows; ++r) {
      const auto channel = static_cast<std::ptrdiff_t>(c), row = static_cast<std::ptrdiff_t>(r);
      tile.add_row(call.source + channel * taps.source_channel + row * taps.source_row,
                   call.weights + channel * taps.weight_channel + row * taps.weight_row, taps);
    }
  }
  tile.store(call);
}

using PixelFunction = void (*)(const Call&);
template <std::size_t V, std::size_t... K>
constexpr std::array<PixelFunction, sizeof...(K)> pixels_of(std::index_sequence<K...> /*unused*/) {
  return {&run_pixel<K + 1, V>...};
}

// Weight gradients.

constexpr std::size_t kFilters = 4, kTaps = 3;

/// The origin of a vector of 32 numbers of 16 bits: one pixel, or 16 samples of each of two, which follow one another or not;
/// or of the last pixel of a row, with zeros behind them.
enum class Vector { kPixel, kNeighbours, kTwoPixels, kLast };

/// @param next  to the other pixel
template <Vector kOf>
HWY_INLINE __m512i load(const std::int16_t* numbers, std::size_t next) {
  if constexpr (kOf == Vector::kPixel || kOf == Vector::kNeighbours) {
    return _mm512_loadu_si512(numbers);
  } else {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers));
    if constexpr (kOf == Vector::kLast) return _mm512_zextsi256_si512(first);
    return _mm512_inserti64x4(_mm512_castsi256_si512(first),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + next)), 1);
  }
}

/// The operands of a block of filters and taps.
struct GradientBlock {
  const std::int16_t *x[kTaps], *high[kFilters], *low[kFilters];
};

struct GradientTile {
  DigitSums sums[kFilters][kTaps];

  HWY_INLINE void begin() {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < kFilters; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < kTaps; ++t) sums[k][t].clear();
    }
  }
  HWY_INLINE void flush(double* to) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < kFilters; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < kTaps; ++t) {
        const __m512d lanes = _mm512_add_pd(sums[k][t].half(0), sums[k][t].half(1));
        to[k * kTaps + t] += _mm512_reduce_add_pd(lanes);
        sums[k][t].clear();
      }
    }
  }
  template <Vector kOf>
  HWY_INLINE void add(const GradientBlock& block, std::size_t at_x, std::size_t next_x, std::size_t at_dy,
                      std::size_t next_dy) {
    __m512i x[kTaps];
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < kTaps; ++t) x[t] = load<kOf>(block.x[t] + at_x, next_x);
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < kFilters; ++k) {
      const __m512i high = load<kOf>(block.high[k] + at_dy, next_dy),
                    low = load<kOf>(block.low[k] + at_dy, next_dy);
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < kTaps; ++t) {
        sums[k][t].high = _mm512_dpwssd_epi32(sums[k][t].high, x[t], high);
        sums[k][t].low = _mm512_dpwssd_epi32(sums[k][t].low, x[t], low);
      }
    }
  }
};

template <Vector kOf>
void add_pixels(const GradientShape& g, const GradientBlock& block, const PixelBlock& pixels, double* sums) {
  constexpr bool kIsOne = kOf == Vector::kPixel;
  constexpr std::size_t kSamples = kIsOne ? 32 : 16, kPixels = kIsOne ? 1 : 2;
  const std::size_t steps = g.batch / kSamples;
  GradientTile tile;
  tile.begin();
  std::size_t left = kMostSteps;
  for (std::size_t p = pixels.first_row; p < pixels.last_row; ++p) {
    std::size_t at_x = p * g.x_row + pixels.first_column * g.x_column,
                at_dy = p * g.dy_row + pixels.first_column * g.batch;
    for (std::size_t q = pixels.first_column; q < pixels.last_column; q += kPixels) {
      if (left < steps) {
        tile.flush(sums);
        left = kMostSteps;
      }
      left -= steps;
      const bool has_next = !kIsOne && q + 1 < pixels.last_column;
      for (std::size_t n = 0; n < g.batch; n += kSamples) {
        if (kIsOne || has_next)
          tile.add<kOf>(block, at_x + n, g.x_column, at_dy + n, g.batch);
        else
          tile.add<Vector::kLast>(block, at_x + n, 0, at_dy + n, 0);
      }
      at_x += kPixels * g.x_column;
      at_dy += kPixels * g.batch;
    }
  }
  tile.flush(sums);
}

/// Targets of a block of packed weights: times the vectors of columns that are computed at once, twelve.
std::size_t targets_of_block(int batch) {
  return batch >= 64 ? 3 : batch >= 32 ? 6 : 12;
}

/// The high digits of a block's targets, then their low ones, of two sources each.
void pack_digit_pairs(const Correlation& c, const std::int16_t* high, const std::int16_t* low,
                      std::int32_t* packed) {
  const auto pair = [](const std::int16_t* digits, std::ptrdiff_t even, std::ptrdiff_t odd) {
    const auto upper = static_cast<std::uint32_t>(odd < 0 ? 0 : digits[odd]);
    return static_cast<std::int32_t>((upper << 16U) | static_cast<std::uint16_t>(digits[even]));
  };
  for_each_weight(c, targets_of_block(c.batch), 2,
                  [&](std::ptrdiff_t even, std::ptrdiff_t odd, std::size_t size, std::size_t k) {
                    packed[k] = pair(high, even, odd);
                    packed[size + k] = pair(low, even, odd);
                    if (k + 1 == size) packed += 2 * size;
                  });
}

/// @param source  [source / 2][row][column][sample], two channels in an element
/// @param packed  as for_each_tile: pairs of high and of low digits
void correlate_packed(const Correlation& c, const std::int32_t* source, const std::int32_t* packed,
                      const double* units, const float* bias, float* target) {
  static constexpr auto kOneVector = pixels_of<1>(std::make_index_sequence<12>());
  static constexpr auto kTwoVectors = pixels_of<2>(std::make_index_sequence<6>());
  static constexpr auto kFourVectors = pixels_of<4>(std::make_index_sequence<3>());
  for_each_tile<std::int32_t, std::int32_t>(
      c, 2, 2, targets_of_block(c.batch), source, packed, units, bias, target,
      [](std::size_t left) {
        return kVectorColumns * (left >= 4 * kVectorColumns ? 4 : left >= 2 * kVectorColumns ? 2 : 1);
      },
      [](std::size_t targets, std::size_t columns, const Call& call) {
        const std::size_t vectors = columns / kVectorColumns;
        (vectors == 4   ? kFourVectors[targets - 1]
         : vectors == 2 ? kTwoVectors[targets - 1]
                        : kOneVector[targets - 1])(call);
      });
}

void correlate(const GroupProduct& p) {
  const std::size_t pairs = (p.sources() + 1) / 2;
  auto* const q = scratch<std::int32_t, OfSource>(pairs * p.pixels() * p.batch());
  auto* const digits = scratch<std::int16_t, OfRounded>(2 * p.filters());
  auto* const packed =
      scratch<std::int32_t, OfWeights>(2 * pairs * p.taps() * static_cast<std::size_t>(p.shape.targets));
  round_pairs(p.sources(), p.pixels(), p.batch(), p.source, p.of_source, q);
  round_all(p.filters(), p.weights, p.of_weights, digits, digits + p.filters());
  pack_digit_pairs(p.shape, digits, digits + p.filters(), packed);
  correlate_packed(p.shape, q, packed, p.units, p.bias, p.target);
}

/// Blocks at the end name their last filter or tap more than once.
void sum_gradients(const GroupGradient& gradient) {
  const GradientShape& g = gradient.shape;
  const std::size_t outputs = g.filters * g.dy_channel;
  auto* const x = scratch<std::int16_t, OfSource>(gradient.image.channels * gradient.image.channel());
  auto* const high = scratch<std::int16_t, OfGradient>(2 * outputs);
  auto* const low = high + outputs;
  round_image(gradient.image, gradient.x, gradient.of_x, x);
  round_digits(outputs / g.batch, g.batch, gradient.dy, gradient.of_dy, high, low);
  const auto add = g.batch % 32 == 0                        ? add_pixels<Vector::kPixel>
                   : g.batch == 16 && g.x_column == g.batch ? add_pixels<Vector::kNeighbours>
                                                            : add_pixels<Vector::kTwoPixels>;
  sum_in_blocks<kFilters, kTaps>(
      g, 2 * sizeof(std::int16_t), scratch<double, OfSums>(numbers_of_sums(g)), gradient.totals,
      [&](std::size_t k, std::size_t t, const PixelBlock& pixels, double* of_block) {
        GradientBlock block;
        for (std::size_t i = 0; i < kFilters; ++i) {
          const std::size_t at = std::min(k + i, g.filters - 1) * g.dy_channel;
          block.high[i] = high + at;
          block.low[i] = low + at;
        }
        for (std::size_t i = 0; i < kTaps; ++i) block.x[i] = x + g.taps[std::min(t + i, g.taps.size() - 1)];
        add(g, block, pixels, of_block);
      });
}

}  // namespace
}  // namespace lockstep::cpu::int16

HWY_POP_ATTRIBUTES

namespace lockstep::cpu::int16 {
namespace {

bool is_here() {
  return __builtin_cpu_supports("avx512vnni") != 0 && simd_name() == "AVX-512";
}

}  // namespace

const Engine kVnni = {"vnni", is_here, correlate, sum_gradients};

}  // namespace lockstep::cpu::int16

#else

namespace lockstep::cpu::int16 {

const Engine kVnni = {"vnni", [] { return false; }, nullptr, nullptr};

}  // namespace lockstep::cpu::int16

#endif
