// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ReLU and sums of two tensors, elementwise and SIMD.
#include "kernels/cpu/activation.hpp"

#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/for_each_vector_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void relu_all(std::size_t size, const float* x, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, y + i);
  });
}

constexpr std::size_t kByte = 8;  ///< numbers whose bits lie in one
using Numbers = hn::CappedTag<float, 16>;

/// The last numbers, fewer than a vector or a byte.
void relu_rest(std::size_t first, std::size_t size, const float* x, float* y, std::uint8_t* positive) {
  for (std::size_t i = first; i < size; ++i) {
    if (i % kByte == 0) positive[i / kByte] = 0;
    positive[i / kByte] |= static_cast<std::uint8_t>((x[i] > 0 ? 1 : 0) << i % kByte);
    y[i] = x[i] < 0 ? 0 : x[i];
  }
}

void select_rest(std::size_t first, std::size_t size, const std::uint8_t* positive, const float* dy,
                 float* dx) {
  for (std::size_t i = first; i < size; ++i) dx[i] = (positive[i / kByte] >> i % kByte & 1) != 0 ? dy[i] : 0;
}

#if HWY_TARGET == HWY_SCALAR

void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive) {
  positive == nullptr ? relu_all(size, x, y) : relu_rest(0, size, x, y, positive);
}

void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx) {
  select_rest(0, size, positive, dy, dx);
}

#else

/// Bits of vectors of 4 numbers share a byte.
template <class D, class M = hn::Mask<D>>
HWY_INLINE void store_bits(D d, M mask, std::size_t i, std::uint8_t* bits) {
  std::uint8_t here[8];
  if (hn::Lanes(d) >= kByte) {
    hn::StoreMaskBits(d, mask, bits + i / kByte);
  } else {
    hn::StoreMaskBits(d, mask, here);
    bits[i / kByte] = static_cast<std::uint8_t>(i % kByte == 0 ? here[0] : bits[i / kByte] | here[0] << 4);
  }
}

template <class D>
HWY_INLINE hn::Mask<D> load_bits(D d, std::size_t i, const std::uint8_t* bits) {
  if (hn::Lanes(d) >= kByte) return hn::LoadMaskBits(d, bits + i / kByte);
  const std::uint8_t here[8] = {static_cast<std::uint8_t>(bits[i / kByte] >> i % kByte)};
  return hn::LoadMaskBits(d, here);
}

void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive) {
  if (positive == nullptr) return relu_all(size, x, y);
  const Numbers d;
  const std::size_t lanes = hn::Lanes(d), whole = size - size % HWY_MAX(lanes, kByte);
  for (std::size_t i = 0; i < whole; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    store_bits(d, hn::Gt(value, hn::Zero(d)), i, positive);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, y + i);
  }
  relu_rest(whole, size, x, y, positive);
}

void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx) {
  const Numbers d;
  const std::size_t lanes = hn::Lanes(d), whole = size - size % HWY_MAX(lanes, kByte);
  for (std::size_t i = 0; i < whole; i += lanes)
    hn::StoreU(hn::IfThenElseZero(load_bits(d, i, positive), hn::LoadU(d, dy + i)), d, dx + i);
  select_rest(whole, size, positive, dy, dx);
}

#endif

void add(std::size_t size, const float* a, const float* b, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(relu_forward);
HWY_EXPORT(relu_backward);
HWY_EXPORT(add);

void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive) {
  HWY_DYNAMIC_DISPATCH(relu_forward)(size, x, y, positive);
}

void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(relu_backward)(size, positive, dy, dx);
}

void add(std::size_t size, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(add)(size, a, b, y);
}

}  // namespace lockstep::cpu
#endif
