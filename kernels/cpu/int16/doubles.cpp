// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine that every processor has: integers in doubles, whose sums of up to kExactTerms products are exact.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int16/doubles.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using int16::GradientShape;
using int16::PixelCall;

using Doubles = hn::CappedTag<double, kLine / 2>;
using DoubleLanes = hn::Vec<Doubles>;
using HalfLine = hn::Rebind<float, Doubles>;
constexpr Doubles kDoubles{};
constexpr HalfLine kFloats{};
constexpr std::size_t kWidth = HWY_LANES(double);

/// Accumulators are targets times vectors of columns: 24 registers of 32, or 12 of 16.
constexpr std::size_t kTargets = 6, kVectors = kManyRegisters ? 4 : 2, kTargetsOfHalf = 2 * kTargets;
/// The largest block of a weight gradient: filters times taps.
constexpr std::size_t kFilters = kManyRegisters ? 4 : 3, kTaps = kManyRegisters ? 6 : 3;

HWY_INLINE DoubleLanes load(const float* numbers) {
  return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, numbers));
}

/// Rounded to float: beyond the largest one to infinity, where Highway's plain code stays at that.
HWY_INLINE hn::Vec<HalfLine> to_floats(DoubleLanes numbers) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(kFloats, static_cast<float>(numbers.raw));
#else
  return hn::DemoteTo(kFloats, numbers);
#endif
}

using Call = PixelCall<float, double>;

template <std::size_t K, std::size_t V>
void run_pixel(const Call& call) {
  DoubleLanes sum[K][V];
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) sum[k][v] = hn::Zero(kDoubles);
  }
  const int16::TapGrid& taps = call.taps;
  for (std::size_t c = 0; c < taps.channels; ++c) {
    for (std::size_t r = 0; r < taps.rows; ++r) {
      const auto channel = static_cast<std::ptrdiff_t>(c), row = static_cast<std::ptrdiff_t>(r);
      const float* source = call.source + channel * taps.source_channel + row * taps.source_row;
      const double* weights = call.weights + channel * taps.weight_channel + row * taps.weight_row;
      for (std::size_t s = 0; s < taps.columns;
           ++s, source += taps.source_column, weights += taps.weight_column) {
        DoubleLanes x[V];
        LOCKSTEP_UNROLL
        for (std::size_t v = 0; v < V; ++v) x[v] = load(source + v * kWidth);
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) {
          const DoubleLanes w = hn::Set(kDoubles, weights[k]);
          LOCKSTEP_UNROLL
          for (std::size_t v = 0; v < V; ++v) sum[k][v] = hn::MulAdd(w, x[v], sum[k][v]);
        }
      }
    }
  }
  float* target = call.target;
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k, target += call.target_step) {
    const auto bias = hn::Set(kFloats, call.bias == nullptr ? 0.0F : call.bias[k]);
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const DoubleLanes unit = hn::LoadU(kDoubles, call.units + v * kWidth);
      hn::StoreU(hn::Add(to_floats(hn::Mul(sum[k][v], unit)), bias), kFloats, target + v * kWidth);
    }
  }
}

using PixelFunction = void (*)(const Call&);
template <std::size_t V, std::size_t... K>
constexpr std::array<PixelFunction, sizeof...(K)> pixels_of(std::index_sequence<K...> /*unused*/) {
  return {&run_pixel<K + 1, V>...};
}

/// Adds what some pixels give to the totals of K filters and T taps.
template <std::size_t K, std::size_t T>
void add_pixels(const GradientShape& g, const float* first_x, const std::size_t* taps, const float* first_dy,
                const int16::PixelBlock& pixels, std::int64_t* totals) {
  DoubleLanes sum[K][T];
  const float *x[T], *dy[K];
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    dy[k] = first_dy + k * g.dy_channel;
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t) sum[k][t] = hn::Zero(kDoubles);
  }
  LOCKSTEP_UNROLL
  for (std::size_t t = 0; t < T; ++t) x[t] = first_x + taps[t];
  for (std::size_t p = pixels.first_row; p < pixels.last_row; ++p) {
    for (std::size_t q = pixels.first_column; q < pixels.last_column; ++q) {
      const std::size_t at_x = p * g.x_row + q * g.x_column, at_dy = p * g.dy_row + q * g.batch;
      for (std::size_t n = 0; n < g.batch; n += kWidth) {
        DoubleLanes gradient[K];
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) gradient[k] = load(dy[k] + at_dy + n);
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t) {
          const DoubleLanes number = load(x[t] + at_x + n);
          LOCKSTEP_UNROLL
          for (std::size_t k = 0; k < K; ++k) sum[k][t] = hn::MulAdd(gradient[k], number, sum[k][t]);
        }
      }
    }
  }
  LOCKSTEP_UNROLL
  for (std::size_t k = 0; k < K; ++k) {
    LOCKSTEP_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      totals[k * g.taps.size() + t] +=
          static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(kDoubles, sum[k][t])));
  }
}

using PixelsFunction = void (*)(const GradientShape&, const float*, const std::size_t*, const float*,
                                const int16::PixelBlock&, std::int64_t*);
template <std::size_t K, std::size_t... T>
constexpr std::array<PixelsFunction, sizeof...(T)> additions_of(std::index_sequence<T...> /*unused*/) {
  return {&add_pixels<K, T + 1>...};
}
template <std::size_t... K>
constexpr auto additions(std::index_sequence<K...> /*unused*/) {
  return std::array{additions_of<K + 1>(std::make_index_sequence<kTaps>())...};
}

}  // namespace

std::size_t targets_of_block(std::size_t batch) {
  return kManyRegisters && batch < kVectors * kWidth ? kTargetsOfHalf : kTargets;
}

void correlate_doubles(const Correlation& c, const float* source, std::size_t together, const double* packed,
                       const double* units, const float* bias, float* target) {
  static constexpr auto kWhole = pixels_of<kVectors>(std::make_index_sequence<kTargets>());
  static constexpr auto kHalf = pixels_of<kVectors / 2>(std::make_index_sequence<kTargetsOfHalf>());
  int16::for_each_tile<float, double>(
      c, 1, 1, targets_of_block(static_cast<std::size_t>(c.batch)), source, together, packed, units, bias,
      target,
      [](std::size_t left) { return left < kVectors * kWidth ? kVectors / 2 * kWidth : kVectors * kWidth; },
      [](std::size_t targets, std::size_t columns, const Call& call) {
        (columns == kVectors * kWidth ? kWhole[targets - 1] : kHalf[targets - 1])(call);
      });
}

void sum_gradients_doubles(const GradientShape& g, const float* x, const float* dy, std::int64_t* totals) {
  static constexpr auto kAdd = additions(std::make_index_sequence<kFilters>());
  std::fill_n(totals, g.filters * g.taps.size(), 0);
  int16::for_each_gradient_tile(g, sizeof(float), kFilters, kTaps,
                                [&](std::size_t filter, std::size_t filters, std::size_t tap,
                                    std::size_t taps, const int16::PixelBlock& pixels) {
                                  kAdd[filters - 1][taps - 1](g, x, g.taps.data() + tap,
                                                              dy + filter * g.dy_channel, pixels,
                                                              totals + filter * g.taps.size() + tap);
                                });
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(targets_of_block);
HWY_EXPORT(correlate_doubles);
HWY_EXPORT(sum_gradients_doubles);

namespace int16 {
namespace {

void correlate(const GroupProduct& p) {
  auto* const q = scratch<float, ScratchUse::kSource>(p.sources() * p.pixels() * p.batch());
  auto* const rounded = scratch<float, ScratchUse::kRounded>(p.filters());
  auto* const packed = scratch<double, ScratchUse::kWeights>(p.filters());
  // Columns of a tile lie next to each other, so that caches hold no others; one channel fits anyway.
  const std::size_t together = p.sources() > 1 ? 32 : p.batch();
  round_columns(p.sources() * p.pixels(), p.batch(), p.source, p.of_source, q, together);
  round_all(p.filters(), p.weights, p.of_weights, rounded);
  double* next = packed;
  for_each_weight(p.shape, HWY_DYNAMIC_DISPATCH(targets_of_block)(p.batch()),
                  [&](std::ptrdiff_t place) { *next++ = rounded[place]; });
  HWY_DYNAMIC_DISPATCH(correlate_doubles)(p.shape, q, together, packed, p.units, p.bias, p.target);
}

void sum_gradients(const GroupGradient& g) {
  const std::size_t outputs = g.shape.filters * g.shape.dy_channel;
  auto* const x = scratch<float, ScratchUse::kSource>(g.image.channels * g.image.channel());
  auto* const dy = scratch<float, ScratchUse::kGradient>(outputs);
  round_image(g.image, g.x, g.of_x, x);
  round_columns(outputs / g.shape.batch, g.shape.batch, g.dy, g.of_dy, dy);
  HWY_DYNAMIC_DISPATCH(sum_gradients_doubles)
  (g.shape, x, dy, g.totals);
}

}  // namespace

const Engine kDoubles = {"doubles", [] { return true; }, correlate, sum_gradients, 0.5};

}  // namespace int16
}  // namespace lockstep::cpu
#endif  // HWY_ONCE
