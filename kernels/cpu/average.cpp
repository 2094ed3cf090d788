// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An average of the weights moves a share of the way to them, elementwise and SIMD.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/average.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/for_each_vector_inl.hpp"
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

void average_weights(float share, std::size_t size, const float* w, float* average) {
  namespace hn = hwy::HWY_NAMESPACE;
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto before = hn::LoadU(d, average + i);
    const auto distance = hn::Sub(hn::LoadU(d, w + i), before);
    hn::StoreU(multiply_add(hn::Set(d, share), distance, before), d, average + i);
  });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(average_weights);

void average(float share, std::size_t size, const float* w, float* average) {
  HWY_DYNAMIC_DISPATCH(average_weights)(share, size, w, average);
}

}  // namespace lockstep::cpu
#endif
