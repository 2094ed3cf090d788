// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Finds units and rounds operands, a vector at a time.
#include "kernels/cpu/int16/rounding.hpp"

#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int16/rounding.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/column_maxima_inl.hpp"
#include "kernels/cpu/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using Integers = hn::Rebind<std::int32_t, LaneTag>;
using Shorts = hn::Rebind<std::int16_t, LaneTag>;
using IntegerLanes = hn::Vec<Integers>;

/// Added to a number below 2^22 it leaves the nearest integer in the last bits, half to even.
constexpr float kRounder = 12582912;  // 1.5 * 2^23
constexpr std::int32_t kRounderBits = 0x4B400000;

/// The factors of some columns.
struct Factors {
  Lanes first, second;

  HWY_INLINE Factors(const float* firsts, const float* seconds)
      : first(hn::LoadU(kTag, firsts)), second(hn::LoadU(kTag, seconds)) {}
  HWY_INLINE Lanes rounder_of(const float* x) const {
    const Lanes scaled = hn::Mul(hn::Mul(hn::LoadU(kTag, x), first), second);
    return hn::Add(scaled, hn::Set(kTag, kRounder));
  }
  HWY_INLINE Lanes rounded(const float* x) const { return hn::Sub(rounder_of(x), hn::Set(kTag, kRounder)); }
  HWY_INLINE IntegerLanes integers(const float* x) const {
    return hn::Sub(hn::BitCast(Integers(), rounder_of(x)), hn::Set(Integers(), kRounderBits));
  }
};

HWY_INLINE IntegerLanes magnitude_bits(const float* x) {
  return hn::And(hn::BitCast(Integers(), hn::LoadU(kTag, x)), hn::Set(Integers(), 0x7FFFFFFF));
}

HWY_INLINE void store_shorts(IntegerLanes q, std::int16_t* to) {
  hn::StoreU(hn::DemoteTo(Shorts(), q), Shorts(), to);
}

}  // namespace

/// The maxima of V vectors of columns stay in registers.
template <std::size_t V>
void maxima_of_columns(std::size_t features, std::size_t batch, const float* x, std::uint32_t* bits) {
  IntegerLanes most[V];
  LOCKSTEP_UNROLL
  for (std::size_t v = 0; v < V; ++v) most[v] = hn::Zero(Integers());
  for (const float* const end = x + features * batch; x != end; x += batch) {
    LOCKSTEP_UNROLL
    for (std::size_t v = 0; v < V; ++v) most[v] = hn::Max(most[v], magnitude_bits(x + v * kVector));
  }
  LOCKSTEP_UNROLL
  for (std::size_t v = 0; v < V; ++v)
    hn::StoreU(most[v], Integers(), reinterpret_cast<std::int32_t*>(bits + v * kVector));
}

void column_maxima(std::size_t features, std::size_t batch, const float* x, std::uint32_t* bits) {
  constexpr std::size_t kAtOnce = 4;
  std::size_t n = 0;
  for (; n + kAtOnce * kVector <= batch; n += kAtOnce * kVector)
    maxima_of_columns<kAtOnce>(features, batch, x + n, bits + n);
  for (; n < batch; n += kVector) maxima_of_columns<1>(features, batch, x + n, bits + n);
}

std::int32_t largest_bits(std::size_t size, const float* numbers) {
  IntegerLanes most = hn::Zero(Integers());
  std::size_t i = 0;
  for (; i + kVector <= size; i += kVector) most = hn::Max(most, magnitude_bits(numbers + i));
  HWY_ALIGN std::int32_t lanes[kVector];
  hn::StoreU(most, Integers(), lanes);
  std::int32_t largest = *std::max_element(lanes, lanes + kVector);
  for (; i < size; ++i)
    largest = std::max(largest, std::bit_cast<std::int32_t>(numbers[i]) & std::int32_t{0x7FFFFFFF});
  return largest;
}

void round_columns(std::size_t features, std::size_t batch, const float* x, const float* first,
                   const float* second, float* q, std::size_t together) {
  for (std::size_t block = 0; block < batch; block += together) {
    const std::size_t end = std::min(batch, block + together);
    for (std::size_t f = 0; f < features; ++f)
      for (std::size_t n = block; n < end; n += kVector, q += kVector)
        hn::StoreU(Factors(first + n, second + n).rounded(x + f * batch + n), kTag, q);
  }
}

std::int64_t sum_rounded(std::size_t features, std::size_t batch, const float* x, const float* first,
                         const float* second) {
  constexpr std::size_t kMost = 65536;  // terms of 32,639 in 31 bits
  HWY_ALIGN std::int32_t lanes[kVector];
  std::int64_t total = 0;
  IntegerLanes sum = hn::Zero(Integers());
  const auto flush = [&]() HWY_ATTR {
    hn::StoreU(sum, Integers(), lanes);
    for (const std::int32_t lane : lanes) total += lane;
    sum = hn::Zero(Integers());
  };
  for (std::size_t i = 0, n = 0, terms = 0; i < features * batch; i += kVector) {
    sum = hn::Add(sum, Factors(first + n, second + n).integers(x + i));
    n = n + kVector == batch ? 0 : n + kVector;
    if (++terms % kMost == 0) flush();
  }
  flush();
  return total;
}

/// Totals that a double holds are rounded a vector at a time.
void round_totals(std::size_t size, const std::int64_t* totals, double unit, float* results) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using Doubles = hn::CappedTag<double, kLine / 2>;
  constexpr Doubles kDoubles{};
  constexpr hn::Rebind<std::int64_t, Doubles> kTotals{};
  constexpr hn::Rebind<float, Doubles> kResults{};
  for (; i + HWY_LANES(double) <= size; i += HWY_LANES(double)) {
    const auto exact = hn::ConvertTo(kDoubles, hn::LoadU(kTotals, totals + i));
    hn::StoreU(hn::DemoteTo(kResults, hn::Mul(exact, hn::Set(kDoubles, unit))), kResults, results + i);
  }
#endif
  for (; i < size; ++i) results[i] = int16::round_once(totals[i], unit);
}

/// The last numbers, fewer than a vector, through a buffer.
void round_all(std::size_t size, const float* numbers, float first, float second, float* q) {
  HWY_ALIGN float firsts[kVector], seconds[kVector], rest[kVector] = {};
  std::fill_n(firsts, kVector, first);
  std::fill_n(seconds, kVector, second);
  const Factors factors(firsts, seconds);
  std::size_t i = 0;
  for (; i + kVector <= size; i += kVector) hn::StoreU(factors.rounded(numbers + i), kTag, q + i);
  std::copy(numbers + i, numbers + size, rest);
  hn::StoreU(factors.rounded(rest), kTag, rest);
  std::copy_n(rest, size - i, q + i);
}

/// A row of an image.
void round_row_to_shorts(std::size_t pixels, std::size_t batch, const float* x, const float* first,
                         const float* second, std::int16_t* q) {
  for (std::size_t at = 0; at < pixels * batch; at += batch)
    for (std::size_t n = 0; n < batch; n += kVector)
      store_shorts(Factors(first + n, second + n).integers(x + at + n), q + at + n);
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(column_maxima);
HWY_EXPORT(largest_bits);
HWY_EXPORT(round_columns);
HWY_EXPORT(sum_rounded);
HWY_EXPORT(round_all);
HWY_EXPORT(round_row_to_shorts);
HWY_EXPORT(round_totals);

namespace int16 {
namespace {

/// ColumnMaxima::bits of x, found here unless they are known.
const std::uint32_t* maxima_of(std::size_t features, std::size_t batch, const Operand& x) {
  static thread_local std::vector<std::uint32_t> own;
  if (x.maxima != nullptr && x.maxima->are_found) return x.maxima->bits;
  if (x.maxima == nullptr) own.resize(batch);
  std::uint32_t* const bits = x.maxima == nullptr ? own.data() : to_find(x.maxima);
  HWY_DYNAMIC_DISPATCH(column_maxima)(features, batch, x.numbers, bits);
  return bits;
}

}  // namespace

void find_units(std::size_t features, std::size_t batch, std::size_t samples, const Operand& x,
                ColumnUnits& units) {
  const std::uint32_t* const largest = maxima_of(features, batch, x);
  units.resize(batch);
  for (std::size_t n = 0; n < samples; ++n) units.set(n, Unit::of(largest[n]));
}

double find_common_unit(std::size_t features, std::size_t batch, std::size_t samples, const Operand& x,
                        ColumnUnits& units) {
  const std::uint32_t* const largest = maxima_of(features, batch, x);
  const Unit unit = Unit::of(samples == 0 ? 0 : *std::max_element(largest, largest + samples));
  units.resize(batch);
  for (std::size_t n = 0; n < samples; ++n) units.set(n, unit);
  return units.value[0];
}

Unit find_unit(std::size_t size, const float* numbers) {
  return Unit::of(static_cast<std::uint32_t>(HWY_DYNAMIC_DISPATCH(largest_bits)(size, numbers)));
}

void round_columns(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units,
                   float* q, std::size_t together) {
  HWY_DYNAMIC_DISPATCH(round_columns)
  (features, batch, x, units.first.data(), units.second.data(), q, std::min(together, batch));
}

void round_columns(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units,
                   std::int16_t* q) {
  HWY_DYNAMIC_DISPATCH(round_row_to_shorts)
  (features, batch, x, units.first.data(), units.second.data(), q);
}

std::int64_t sum_rounded(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units) {
  return HWY_DYNAMIC_DISPATCH(sum_rounded)(features, batch, x, units.first.data(), units.second.data());
}

void round_all(std::size_t size, const float* numbers, const Unit& unit, float* q) {
  HWY_DYNAMIC_DISPATCH(round_all)(size, numbers, unit.first, unit.second, q);
}

void round_all(std::size_t size, const float* numbers, const Unit& unit, std::int16_t* q) {
  const std::vector<float> first(kLanes, unit.first), second(kLanes, unit.second);
  const std::size_t whole = size / kLanes;
  const auto round = HWY_DYNAMIC_DISPATCH(round_row_to_shorts);
  round(whole, kLanes, numbers, first.data(), second.data(), q);
  alignas(64) float rest[kLanes] = {};
  std::int16_t of_rest[kLanes];
  std::copy(numbers + whole * kLanes, numbers + size, rest);
  round(1, kLanes, rest, first.data(), second.data(), of_rest);
  std::copy_n(of_rest, size % kLanes, q + whole * kLanes);
}

void round_totals(std::size_t size, std::size_t terms, const std::int64_t* totals, double unit,
                  float* results) {
  constexpr std::size_t kExactInDouble = std::size_t{1} << 23;  // products below 2^30
  if (terms <= kExactInDouble) return HWY_DYNAMIC_DISPATCH(round_totals)(size, totals, unit, results);
  for (std::size_t i = 0; i < size; ++i) results[i] = round_once(totals[i], unit);
}

}  // namespace int16
}  // namespace lockstep::cpu
#endif  // HWY_ONCE
