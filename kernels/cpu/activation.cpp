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

void relu_forward(std::size_t size, const float* x, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, y + i);
  });
}

void relu_backward(std::size_t size, const float* y, const float* dy, float* dx) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto active = hn::Gt(hn::LoadU(d, y + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(active, hn::LoadU(d, dy + i)), d, dx + i);
  });
}

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

void relu_forward(std::size_t size, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(relu_forward)(size, x, y);
}

void relu_backward(std::size_t size, const float* y, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(relu_backward)(size, y, dy, dx);
}

void add(std::size_t size, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(add)(size, a, b, y);
}

}  // namespace lockstep::cpu
#endif
