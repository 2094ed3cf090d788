// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The SGD step, elementwise and SIMD: one pass over gradient, momentum and weights.
#include "kernels/cpu/sgd.hpp"

#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sgd.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/for_each_vector_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// w -= lr * (g + decay * w)
void sgd_plain(const SgdParams& params, std::size_t size, const float* g, float* /*m*/, float* w) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(d, w + i);
    const auto direction = hn::MulAdd(hn::Set(d, params.weight_decay), weight, hn::LoadU(d, g + i));
    hn::StoreU(hn::NegMulAdd(hn::Set(d, params.learning_rate), direction, weight), d, w + i);
  });
}

template <bool kNesterov>
HWY_INLINE void sgd_with_momentum(const SgdParams& params, std::size_t size, const float* g, float* m,
                                  float* w) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto momentum = hn::Set(d, params.momentum);
    const auto weight = hn::LoadU(d, w + i);
    const auto gradient = hn::MulAdd(hn::Set(d, params.weight_decay), weight, hn::LoadU(d, g + i));
    const auto velocity = hn::MulAdd(momentum, hn::LoadU(d, m + i), gradient);
    const auto direction = kNesterov ? hn::MulAdd(momentum, velocity, gradient) : velocity;
    hn::StoreU(velocity, d, m + i);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, params.learning_rate), direction, weight), d, w + i);
  });
}

void sgd_momentum(const SgdParams& params, std::size_t size, const float* g, float* m, float* w) {
  sgd_with_momentum<false>(params, size, g, m, w);
}

void sgd_nesterov(const SgdParams& params, std::size_t size, const float* g, float* m, float* w) {
  sgd_with_momentum<true>(params, size, g, m, w);
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(sgd_plain);
HWY_EXPORT(sgd_momentum);
HWY_EXPORT(sgd_nesterov);

void sgd_step(const SgdParams& params, std::size_t size, const float* g, float* m, float* w) {
  if (params.momentum == 0) {
    HWY_DYNAMIC_DISPATCH(sgd_plain)(params, size, g, m, w);
  } else if (params.nesterov) {
    HWY_DYNAMIC_DISPATCH(sgd_nesterov)(params, size, g, m, w);
  } else {
    HWY_DYNAMIC_DISPATCH(sgd_momentum)(params, size, g, m, w);
  }
}

}  // namespace lockstep::cpu
#endif
