// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "vnni": weight gradients of many pixels. A vector is 32 or 64 samples of a pixel, of dy and x, so that no
/// lane is empty, however few filters there are; sums over lanes are made when all pixels of a block have been added.
#include "kernels/cpu/int16/engines.hpp"

#if defined(__x86_64__)
#include "kernels/cpu/int16/vnni_inl.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {
namespace {

/// Filters of a tile, and taps of one with so many: sums in registers.
constexpr std::size_t kMostFilters = 5, kMostTaps = 12;
constexpr std::array<std::size_t, kMostFilters + 1> kTapsBesides = {0, 12, 12, 8, 6, 5};
/// Samples of a step, which are one vector of digits or two of numbers.
constexpr std::size_t kStep = kSamplesOfStep, kNumbers = 32;
/// Steps between joins. dy of a tile's filters stays in the first-level cache, and sums in 32 bits, see kMostQuads.
constexpr std::size_t kSteps = 64;
static_assert(kSteps <= kMostQuads);

/// A step, rounded, and its high digits. Samples have another order than before, the same in all steps: a lane of
/// digits has the four samples that this lane has in both halves of the numbers, as upper_part() wants.
struct RoundedStep {
  __m512i numbers[2], digits;

  HWY_INLINE RoundedStep(const float* x, const ColumnUnits& units, std::size_t column) {
    __m512i q[4];
    LOCKSTEP_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t n = i * kVectorColumns;
      q[i] = round_vector(x + n, _mm512_loadu_ps(units.first.data() + column + n),
                          _mm512_loadu_ps(units.second.data() + column + n));
    }
    numbers[0] = _mm512_packs_epi32(q[0], q[1]);
    numbers[1] = _mm512_packs_epi32(q[2], q[3]);
    digits = high_digits(numbers[0], numbers[1]);
  }
};

/// Writes x in its frame, from where it points on.
struct ImagePacker {
  std::int16_t* numbers;
  std::uint8_t* digits;

  void clear(std::size_t count) {
    std::fill_n(numbers, count, std::int16_t{0});
    std::fill_n(digits, count, std::uint8_t{128});
    numbers += count, digits += count;
  }
  void add_row(const float* x, std::size_t pixels, std::size_t batch, const ColumnUnits& units) {
    for (const float* const end = x + pixels * batch; x != end;) {
      for (std::size_t n = 0; n < batch; n += kStep, x += kStep, numbers += kStep, digits += kStep) {
        const RoundedStep q(x, units, n);
        _mm512_storeu_si512(numbers, q.numbers[0]);
        _mm512_storeu_si512(numbers + kNumbers, q.numbers[1]);
        _mm512_storeu_si512(digits, without_sign(q.digits));
      }
    }
  }
};

/// Packs what round_image() makes.
PackedImage pack_image(const FramedImage& image, const float* x, const ColumnUnits& units) {
  const std::size_t size = image.channels * image.channel(), side = image.frame * image.batch;
  auto* const numbers = scratch<std::int16_t, ScratchUse::kSource>(size);
  auto* const digits = scratch<std::uint8_t, ScratchUse::kRounded>(size);
  ImagePacker next{numbers, digits};
  for (std::size_t c = 0; c < image.channels; ++c) {
    next.clear(image.frame * image.row() + side);
    for (std::size_t h = 0; h < image.height; ++h, x += image.width * image.batch) {
      next.add_row(x, image.width, image.batch, units);
      next.clear(2 * side);  // the end of this row and the beginning of the next one
    }
    next.clear(image.frame * image.row() - side);
  }
  return {numbers, digits};
}

/// Some steps, and dy of some filters there.
struct PackedSteps {
  std::size_t count = 0;
  std::size_t at_x[kSteps], at_dy[kSteps];
  alignas(64) std::int16_t numbers[kSteps * kMostFilters * kStep];  ///< [step][half][filter][sample]
  alignas(64) std::int8_t digits[kSteps * kMostFilters * kStep];    ///< [step][filter][sample]
  __m512i excess[kMostFilters];                                     ///< 128 times all digits of a filter

  void pack(const GroupGradient& gradient, std::size_t first_filter, std::size_t filters) {
    const GradientShape& g = gradient.shape;
    for (std::size_t k = 0; k < filters; ++k) {
      const float* const dy = gradient.dy + (first_filter + k) * g.dy_channel;
      excess[k] = _mm512_setzero_si512();
      for (std::size_t i = 0; i < count; ++i) {
        const RoundedStep q(dy + at_dy[i], gradient.of_dy, at_dy[i] % g.batch);
        _mm512_store_si512(numbers + (2 * i * filters + k) * kNumbers, q.numbers[0]);
        _mm512_store_si512(numbers + ((2 * i + 1) * filters + k) * kNumbers, q.numbers[1]);
        _mm512_store_si512(digits + (i * filters + k) * kStep, q.digits);
        excess[k] = add_128_times(excess[k], q.digits);
      }
    }
  }
};

/// Sums [filter][tap] of numbers or of digits, whose vectors are `kAtOnce` samples.
template <std::size_t K, std::size_t T, std::size_t kAtOnce, class X, class Dy>
HWY_NOINLINE void sum_steps(const PackedSteps& steps, const X* x, const std::size_t* tap, const Dy* dy,
                            __m512i* sums) {
  __m512i sum[K][T];
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) sum[k][t] = _mm512_setzero_si512();
  }
  for (std::size_t i = 0; i < steps.count; ++i) {
    const X* const step = x + steps.at_x[i];
    LOCKSTEP_UNROLL
    for (std::size_t n = 0; n < kStep; n += kAtOnce, dy += K * kAtOnce) {
      __m512i source[T];
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) source[t] = _mm512_loadu_si512(step + tap[t] + n);
      LOCKSTEP_UNROLL
      for (std::size_t k = 0; k < K; ++k) {
        const __m512i gradient = _mm512_load_si512(dy + k * kAtOnce);
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t) {
          if constexpr (kAtOnce == kStep)
            sum[k][t] = _mm512_dpbusd_epi32(sum[k][t], source[t], gradient);
          else
            sum[k][t] = _mm512_dpwssd_epi32(sum[k][t], source[t], gradient);
        }
      }
    }
  }
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) _mm512_store_si512(sums + k * T + t, sum[k][t]);
  }
}

/// In each block of four lanes, lane i becomes the sum of that block of vector i.
HWY_INLINE __m512i sum_blocks(const __m512i* v) {
  const __m512i even = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i odd = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd));
}
/// Lane i becomes the sum of vector i.
HWY_INLINE __m512i sum_16(const __m512i* v) {
  const __m512i a = sum_blocks(v), b = sum_blocks(v + 4), c = sum_blocks(v + 8), e = sum_blocks(v + 12);
  const __m512i first = _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
  const __m512i second = _mm512_add_epi32(_mm512_shuffle_i32x4(c, e, 0x88), _mm512_shuffle_i32x4(c, e, 0xDD));
  return _mm512_add_epi32(_mm512_shuffle_i32x4(first, second, 0x88),
                          _mm512_shuffle_i32x4(first, second, 0xDD));
}

/// Adds to totals [filter][tap], with one filter every `all_taps`.
template <std::size_t K, std::size_t T>
void add_steps(const PackedSteps& steps, const PackedImage& x, const std::size_t* tap, std::size_t all_taps,
               std::int64_t* totals) {
  constexpr std::size_t kSums = K * T, kVectors = (kSums + 15) / 16 * 16;
  __m512i low[kVectors], high[kVectors];
  sum_steps<K, T, kNumbers>(steps, x.numbers, tap, steps.numbers, low);
  sum_steps<K, T, kStep>(steps, x.digits, tap, steps.digits, high);
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) {
      const std::size_t i = k * T + t;
      high[i] = upper_part(low[i], _mm512_sub_epi32(high[i], steps.excess[k]));
      low[i] = lower_part(low[i]);
    }
  }
  std::fill(low + kSums, low + kVectors, _mm512_setzero_si512());
  std::fill(high + kSums, high + kVectors, _mm512_setzero_si512());
  alignas(64) std::int32_t upper[kVectors], lower[kVectors];
  for (std::size_t i = 0; i < kVectors; i += 16) {
    _mm512_store_si512(upper + i, sum_16(high + i));
    _mm512_store_si512(lower + i, sum_16(low + i));
  }
  for (std::size_t k = 0; k < K; ++k)
    for (std::size_t t = 0; t < T; ++t)
      totals[k * all_taps + t] += std::int64_t{upper[k * T + t]} * 65536 + lower[k * T + t];
}

using StepsFunction = void (*)(const PackedSteps&, const PackedImage&, const std::size_t*, std::size_t,
                               std::int64_t*);
template <std::size_t K, std::size_t... T>
constexpr std::array<StepsFunction, kMostTaps> steps_of(std::index_sequence<T...> /*unused*/) {
  return {&add_steps<K, T + 1>...};
}
template <std::size_t... K>
constexpr auto steps_table(std::index_sequence<K...> /*unused*/) {
  return std::array{steps_of<K + 1>(std::make_index_sequence<kTapsBesides[K + 1]>())...};
}

}  // namespace

void sum_gradients_of_samples(const GroupGradient& gradient) {
  static constexpr auto kAdd = steps_table(std::make_index_sequence<kMostFilters>());
  const GradientShape& g = gradient.shape;
  const std::size_t taps = g.taps.size(), all = g.rows * g.columns * g.batch / kStep;
  const PackedImage x = pack_image(gradient.image, gradient.x, gradient.of_x);
  auto* const steps = scratch<PackedSteps, ScratchUse::kGradient>(1);
  std::fill_n(gradient.totals, g.filters * taps, 0);
  for_each_block(all, kSteps, [&](std::size_t first_step, std::size_t count) {
    steps->count = count;
    find_places(g, first_step, count, kStep, steps->at_x, steps->at_dy);
    for_each_block(g.filters, kMostFilters, [&](std::size_t filter, std::size_t filters) {
      steps->pack(gradient, filter, filters);
      for_each_block(taps, kTapsBesides[filters], [&](std::size_t tap, std::size_t size) {
        kAdd[filters - 1][size - 1](*steps, x, g.taps.data() + tap, taps,
                                    gradient.totals + filter * taps + tap);
      });
    });
  });
}

}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES

#endif
