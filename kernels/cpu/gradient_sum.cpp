// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of gradients over grains: fixed point on integers, or plain fp32.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/numerics/sums.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gradient_sum.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/for_each_vector_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// Half to even, for |x| <= 2^50. Next to 1.5 * 2^52 doubles are the integers, and so are their bit patterns.
constexpr double kMagic = 6755399441055744.0;

template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D64>> integer_bits(D64 d64, V64 magic_sum) {
  const hn::RebindToSigned<D64> di64;
  return hn::Sub(hn::BitCast(di64, magic_sum), hn::BitCast(di64, hn::Set(d64, kMagic)));
}

/// x rounded half to even to an integer, |x| <= 2^62. It is high * 2^32 + low, and only low is rounded. Few
/// machines convert double to int64, and none of them differently from this.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D64>> round_to_int64(D64 d64, V64 x) {
  const auto magic = hn::Set(d64, kMagic);
  const auto high = hn::MulAdd(x, hn::Set(d64, 0x1p-32), magic);
  const auto low = hn::NegMulAdd(hn::Sub(high, magic), hn::Set(d64, 0x1p32), x);
  return hn::Add(hn::ShiftLeft<32>(integer_bits(d64, high)), integer_bits(d64, hn::Add(low, magic)));
}

/// NaN is not below the limit.
bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format, std::int64_t* sum) {
  bool good = true;
  for_each_vector<double>(size, [&](auto d64, std::size_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d64)> d32;
    const hn::RebindToSigned<decltype(d64)> di64;
    const auto value = hn::LoadU(d32, g + i);
    const auto is_below = hn::Lt(hn::Abs(value), hn::Set(d32, format.limit));
    const auto wide = hn::PromoteTo(d64, hn::IfThenElseZero(is_below, value));
    // A float times a power of two is exact in double.
    const auto fixed = round_to_int64(d64, hn::Mul(wide, hn::Set(d64, format.scale)));
    hn::StoreU(hn::Add(hn::LoadU(di64, sum + i), fixed), di64, sum + i);
    good &= hn::AllTrue(d32, is_below);
  });
  return good;
}

template <bool kDivide>
HWY_INLINE void mean_from_exact_all(std::size_t size, const std::int64_t* sum, double factor, float* g) {
  for_each_vector<double>(size, [&](auto d64, std::size_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d64)> d32;
    const hn::Rebind<std::int64_t, decltype(d64)> di64;
    const auto wide = hn::ConvertTo(d64, hn::LoadU(di64, sum + i)), by = hn::Set(d64, factor);
    hn::StoreU(hn::DemoteTo(d32, kDivide ? hn::Div(wide, by) : hn::Mul(wide, by)), d32, g + i);
  });
}

void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count, float* g) {
  // Division by scale * count, which is exact in double. For a power of two, multiplication gives the same
  // bits sooner.
  const double divisor = scale * static_cast<double>(count);
  if (std::has_single_bit(static_cast<std::uint64_t>(count))) {
    mean_from_exact_all<false>(size, sum, 1 / divisor, g);
  } else {
    mean_from_exact_all<true>(size, sum, divisor, g);
  }
}

void mean(std::size_t size, const float* sum, std::int64_t count, float* g) {
  const auto divisor = static_cast<float>(count);
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Div(hn::LoadU(d, sum + i), hn::Set(d, divisor)), d, g + i);
  });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(accumulate_exact);
HWY_EXPORT(mean_from_exact);
HWY_EXPORT(mean);

bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format, std::int64_t* sum) {
  return HWY_DYNAMIC_DISPATCH(accumulate_exact)(size, g, format, sum);
}

void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count, float* g) {
  HWY_DYNAMIC_DISPATCH(mean_from_exact)(size, sum, scale, count, g);
}

void mean(std::size_t size, const float* sum, std::int64_t count, float* g) {
  HWY_DYNAMIC_DISPATCH(mean)(size, sum, count, g);
}

}  // namespace lockstep::cpu
#endif
