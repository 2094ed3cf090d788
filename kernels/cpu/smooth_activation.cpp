// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations with a curve, elementwise and SIMD; their arithmetic is that of
/// kernels/numerics/activation_math.inc.
#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/shapes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/smooth_activation.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/activation_math_inl.hpp"
#include "kernels/cpu/for_each_vector_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <Activation kKind>
void forward(std::size_t size, const float* x, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    using Math = VectorMath<decltype(d)>;
    hn::StoreU(ActivationMath<kKind>::template forward<Math>(hn::LoadU(d, x + i)), d, y + i);
  });
}

template <Activation kKind>
void backward(std::size_t size, const float* saved, const float* dy, float* dx) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    using Math = VectorMath<decltype(d)>;
    const auto gradient = hn::LoadU(d, dy + i);
    hn::StoreU(ActivationMath<kKind>::template backward<Math>(hn::LoadU(d, saved + i), gradient), d, dx + i);
  });
}

void activation_forward(Activation kind, std::size_t size, const float* x, float* y) {
  switch (kind) {
    case Activation::kTanh:
      return forward<Activation::kTanh>(size, x, y);
    case Activation::kSigmoid:
      return forward<Activation::kSigmoid>(size, x, y);
    case Activation::kGelu:
      return forward<Activation::kGelu>(size, x, y);
    case Activation::kGeluTanh:
      return forward<Activation::kGeluTanh>(size, x, y);
  }
}

void activation_backward(Activation kind, std::size_t size, const float* saved, const float* dy, float* dx) {
  switch (kind) {
    case Activation::kTanh:
      return backward<Activation::kTanh>(size, saved, dy, dx);
    case Activation::kSigmoid:
      return backward<Activation::kSigmoid>(size, saved, dy, dx);
    case Activation::kGelu:
      return backward<Activation::kGelu>(size, saved, dy, dx);
    case Activation::kGeluTanh:
      return backward<Activation::kGeluTanh>(size, saved, dy, dx);
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(activation_forward);
HWY_EXPORT(activation_backward);

void activation_forward(Activation kind, std::size_t size, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(activation_forward)(kind, size, x, y);
}

void activation_backward(Activation kind, std::size_t size, const float* saved, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(activation_backward)(kind, size, saved, dy, dx);
}

}  // namespace lockstep::cpu
#endif
