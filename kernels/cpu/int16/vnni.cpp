// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "vnni" (AVX-512 VNNI): forward and data gradient, by tiles of targets and columns of one pixel.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/simd_choice.hpp"

#if defined(__x86_64__)
#include "kernels/cpu/int16/vnni_packing_inl.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {
namespace {

/// Sums in registers: targets times vectors of columns.
constexpr std::size_t kRegisters = 24, kMostTargets = 12;
/// A window of so many keeps its sums of pairs and of quads in registers at once.
constexpr std::size_t kFewQuads = 16;

/// Some targets of one pixel, for some columns.
struct Pixel {
  const WindowSteps& steps;
  const std::int32_t *pairs, *digits;                        ///< the packed source at the first tap
  const std::int32_t *weights_of_pairs, *weights_of_digits;  ///< weights of the block of targets
  const double* units;
  const float* normal_units;  ///< units, if no result is subnormal; else null
  const float* bias;          ///< null: zeros
  float* target;
  std::size_t target_step;
};

/// Otherwise g++ joins a sum while others are made, and has no registers left.
template <std::size_t K, std::size_t V>
HWY_INLINE void keep_in_registers(__m512i (&sum)[K][V]) {
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) LOCKSTEP_VNNI_KEEP(sum[k][v]);
  }
}

/// Sums of all K * V in registers, from 0 on. With digits, 128 times those of target k are in lane k of the result.
template <std::size_t K, std::size_t V, bool kDigits>
HWY_INLINE __m512i sum_in_registers(const Step* step, std::size_t count, const std::int32_t* source,
                                    const std::int32_t* weights, __m512i (&sum)[K][V]) {
  __m512i of_weights = _mm512_setzero_si512();
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) sum[k][v] = _mm512_setzero_si512();
  }
  for (const Step* const end = step + count; step != end; ++step) {
    const std::int32_t* const from = source + step->source;
    const std::int32_t* const weight = weights + step->weight * static_cast<std::ptrdiff_t>(K);
    __m512i x[V];
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) x[v] = _mm512_loadu_si512(from + v * kVectorColumns);
    if constexpr (kDigits) of_weights = add_128_times(of_weights, _mm512_loadu_si512(weight));
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      const __m512i w = _mm512_set1_epi32(weight[k]);
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        if constexpr (kDigits)
          sum[k][v] = _mm512_dpbusd_epi32(sum[k][v], x[v], w);
        else
          sum[k][v] = _mm512_dpwssd_epi32(sum[k][v], x[v], w);
      }
    }
  }
  keep_in_registers(sum);
  return of_weights;
}

/// sum_in_registers(), to memory, and then its result.
template <std::size_t K, std::size_t V, bool kDigits>
HWY_NOINLINE void sum_steps(const Step* step, std::size_t count, const std::int32_t* source,
                            const std::int32_t* weights, __m512i* sums) {
  __m512i sum[K][V];
  const __m512i of_weights = sum_in_registers<K, V, kDigits>(step, count, source, weights, sum);
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) _mm512_store_si512(sums + k * V + v, sum[k][v]);
  }
  if constexpr (kDigits) _mm512_store_si512(sums + K * V, of_weights);
}

/// Sums of at most kMostQuads quads, rounded once: both parts of one are exact in fp32.
HWY_INLINE __m512 short_sums(__m512i low, __m512i digits) {
  static_assert(kMostQuads * 4 << 14 <= 1 << 24);
  const __m512 upper = _mm512_cvtepi32_ps(upper_part(low, digits));
  return _mm512_fmadd_ps(upper, _mm512_set1_ps(65536), _mm512_cvtepi32_ps(lower_part(low)));
}

/// Sums of 16 columns in 64 bits. Their order is 0 1 4 5 8 9 12 13 and 2 3 6 7 10 11 14 15.
struct LongSums {
  __m512i half[2];

  LongSums() = default;
  HWY_INLINE LongSums(__m512i low, __m512i digits) {
    const __m512i upper = _mm512_srai_epi32(upper_part(low, digits), 16);
    half[0] = _mm512_unpacklo_epi32(low, upper);
    half[1] = _mm512_unpackhi_epi32(low, upper);
  }
  HWY_INLINE void add(const LongSums& other) {
    half[0] = _mm512_add_epi64(half[0], other.half[0]);
    half[1] = _mm512_add_epi64(half[1], other.half[1]);
  }
  /// Rounded once, in the columns' order.
  HWY_INLINE __m512 floats() const {
    const __m512i order = _mm512_setr_epi32(0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    return _mm512_permutex2var_ps(_mm512_castps256_ps512(_mm512_cvtepi64_ps(half[0])), order,
                                  _mm512_castps256_ps512(_mm512_cvtepi64_ps(half[1])));
  }
  /// Times units, rounded once.
  HWY_NOINLINE __m512 times(const double* units) const {
    alignas(64) std::int64_t numbers[kVectorColumns];
    alignas(64) float results[kVectorColumns];
    _mm512_store_si512(numbers, half[0]);
    _mm512_store_si512(numbers + kVectorColumns / 2, half[1]);
    for (std::size_t i = 0; i < kVectorColumns; ++i)
      results[i] = round_once(numbers[i % 4 / 2 * kVectorColumns / 2 + i / 4 * 2 + i % 2], units[i]);
    return _mm512_load_ps(results);
  }
};

HWY_INLINE void store_result(const Pixel& p, std::size_t k, std::size_t v, __m512 sums, __m512 bias) {
  const std::size_t n = v * kVectorColumns;
  const __m512 result = _mm512_mul_ps(sums, _mm512_loadu_ps(p.normal_units + n));
  _mm512_storeu_ps(p.target + k * p.target_step + n, _mm512_add_ps(result, bias));
}

/// Both sums stay in registers: for a few steps, which memory would cost as much time as.
template <std::size_t K, std::size_t V>
void run_small_pixel(const Pixel& p) {
  __m512i low[K][V], high[K][V];
  sum_in_registers<K, V, false>(p.steps.pairs.data(), p.steps.pairs.size(), p.pairs, p.weights_of_pairs, low);
  const __m512i excess = sum_in_registers<K, V, true>(p.steps.quads.data(), p.steps.quads.size(), p.digits,
                                                      p.weights_of_digits, high);
  keep_in_registers(low);
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    const __m512i of_weights = _mm512_permutexvar_epi32(_mm512_set1_epi32(static_cast<int>(k)), excess);
    const __m512 bias = _mm512_set1_ps(p.bias == nullptr ? 0.0F : p.bias[k]);
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v)
      store_result(p, k, v, short_sums(low[k][v], _mm512_sub_epi32(high[k][v], of_weights)), bias);
  }
}

template <std::size_t K, std::size_t V>
void run_pixel(const Pixel& p) {
  __m512i low[K * V], high[K * V + 1];
  std::array<LongSums, K * V> totals;
  const std::size_t quads = p.steps.quads.size();
  std::size_t done = 0;
  do {
    const bool is_first = done == 0;
    const std::size_t some = std::min(kMostQuads, quads - done), pairs = p.steps.pairs_of(done);
    sum_steps<K, V, false>(p.steps.pairs.data() + pairs, p.steps.pairs_of(done + some) - pairs, p.pairs,
                           p.weights_of_pairs, low);
    sum_steps<K, V, true>(p.steps.quads.data() + done, some, p.digits, p.weights_of_digits, high);
    done += some;
    alignas(64) std::int32_t excess[kVectorColumns];
    _mm512_store_si512(excess, high[K * V]);
    for (std::size_t k = 0; k < K; ++k) {
      const __m512i of_weights = _mm512_set1_epi32(excess[k]);
      const __m512 bias = _mm512_set1_ps(p.bias == nullptr ? 0.0F : p.bias[k]);
      LOCKSTEP_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        const std::size_t i = k * V + v;
        const __m512i digits = _mm512_sub_epi32(high[i], of_weights);
        if (quads <= kMostQuads && p.normal_units != nullptr) {
          store_result(p, k, v, short_sums(low[i], digits), bias);
          continue;
        }
        LongSums sums(low[i], digits);
        if (!is_first) sums.add(totals[i]);
        const std::size_t n = v * kVectorColumns;
        if (done < quads)
          totals[i] = sums;
        else if (p.normal_units != nullptr)
          store_result(p, k, v, sums.floats(), bias);
        else
          _mm512_storeu_ps(p.target + k * p.target_step + n, _mm512_add_ps(sums.times(p.units + n), bias));
      }
    }
  } while (done < quads);
}

/// At a time, with so many vectors of columns.
constexpr std::size_t targets_at_once(std::size_t vectors, bool is_small) {
  return std::min(kMostTargets, (is_small ? kRegisters / 2 : kRegisters) / vectors);
}

using PixelFunction = void (*)(const Pixel&);

/// The functions for one target, two, and so on.
template <std::size_t V>
const PixelFunction* pixel_functions(bool is_small) {
  static constexpr auto kPixels =
      make_table<targets_at_once(V, false)>([](auto k) { return &run_pixel<k, V>; });
  static constexpr auto kSmallPixels =
      make_table<targets_at_once(V, true)>([](auto k) { return &run_small_pixel<k, V>; });
  return is_small ? kSmallPixels.data() : kPixels.data();
}
std::size_t vectors_at_once(std::size_t columns) {
  return columns >= 4 * kVectorColumns ? 4 : columns >= 2 * kVectorColumns ? 2 : 1;
}

/// The packed operands of a product.
struct Packed {
  std::int32_t *pairs, *digits, *weights_of_pairs, *weights_of_digits;
  const float* normal_units;  ///< Pixel::normal_units of all columns
  bool is_small;
  std::size_t targets_of_block;
};

/// Units as floats, or null if multiples of one might be subnormal, or one is too large.
const float* find_normal_units(std::size_t batch, const double* units) {
  auto* const floats = scratch<float, ScratchUse::kSums>(batch);
  for (std::size_t n = 0; n < batch; ++n) {
    if (units[n] != 0 && (units[n] < 0x1p-126 || units[n] > 0x1p127)) return nullptr;
    floats[n] = static_cast<float>(units[n]);
  }
  return floats;
}

/// The first columns from n on, of all targets and pixels.
void run_columns(const GroupProduct& p, const Packing& packing, const Packed& packed, std::size_t n,
                 std::size_t vectors, const Windows& windows) {
  const auto find = vectors == 4   ? pixel_functions<4>
                    : vectors == 2 ? pixel_functions<2>
                                   : pixel_functions<1>;
  const PixelFunction* const run_some = find(packed.is_small);
  const Correlation& c = p.shape;
  const std::size_t batch = p.batch(), pixels = c.rows.size() * c.columns.size();
  const auto run = [&](std::size_t first, std::size_t size, std::size_t row, std::size_t column) {
    const std::ptrdiff_t source = packing.first(c.rows[row], c.columns[column]) + n;
    const std::size_t weights = first * packing.lines();
    run_some[size - 1]({windows.at(row, column), packed.pairs + source, packed.digits + source,
                        packed.weights_of_pairs + weights * packing.pairs(),
                        packed.weights_of_digits + weights * packing.quads(), p.units + n,
                        packed.normal_units == nullptr ? nullptr : packed.normal_units + n,
                        p.bias == nullptr ? nullptr : p.bias + first,
                        p.target + (first * pixels + row * c.columns.size() + column) * batch + n,
                        pixels * batch});
  };
  for_each_target_and_pixel(c, packed.targets_of_block, run);
}

void correlate(const GroupProduct& p) {
  const Packing packing(p.shape);
  const std::size_t in_pairs = packing.numbers_of(packing.pairs()),
                    in_quads = packing.numbers_of(packing.quads());
  const std::size_t weights = packing.lines() * p.shape.targets;
  auto* const source = scratch<std::int32_t, ScratchUse::kSource>(in_pairs + in_quads);
  auto* const packed_weights = scratch<std::int32_t, ScratchUse::kWeights>(
      weights * (packing.pairs() + packing.quads()) + kVectorColumns);
  auto* const rounded = scratch<std::int16_t, ScratchUse::kGradient>(p.filters());
  const float* const normal_units = find_normal_units(p.batch(), p.units);
  const bool is_small = normal_units != nullptr && packing.quads() * packing.lines() <= kFewQuads;
  const std::size_t targets = targets_at_once(vectors_at_once(p.batch()), is_small);
  const Packed packed{
      source,       source + in_pairs, packed_weights, packed_weights + weights * packing.pairs(),
      normal_units, is_small,          targets};
  pack_source(p, packing, packed.pairs, packed.digits);
  round_all(p.filters(), p.weights, p.of_weights, rounded);
  pack_weights(packing, targets, rounded, packed.weights_of_pairs, packed.weights_of_digits);
  const Windows windows(packing);
  for (std::size_t n = 0, vectors = 0; n < p.batch(); n += vectors * kVectorColumns) {
    vectors = vectors_at_once(p.batch() - n);
    run_columns(p, packing, packed, n, vectors, windows);
  }
}

}  // namespace
}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES

namespace lockstep::cpu::int16 {
namespace {

bool is_here() {
  return __builtin_cpu_supports("avx512vnni") != 0 && simd_name() == "AVX-512";
}

}  // namespace

/// Three instructions are four of fp32.
const Engine kVnni = {"vnni", is_here, vnni::correlate, vnni::sum_gradients, 4.0 / 3};

}  // namespace lockstep::cpu::int16

#else

namespace lockstep::cpu::int16 {

const Engine kVnni = {"vnni", [] { return false; }, nullptr, nullptr};

}  // namespace lockstep::cpu::int16

#endif
