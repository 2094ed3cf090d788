// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Average-pooling: a lane is a sample, so a window is a few additions of whole vectors.
#include "kernels/cpu/pool.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_avg.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/pool_window_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Pixels = hn::CappedTag<float, 16>;

HWY_INLINE float share_of_tap(const Pool2dShape& shape) {
  return 1.0F / static_cast<float>(shape.kernel * shape.kernel);
}

void avg_halving_forward(const Pool2dShape& shape, const float* x, float* y) {
  const Pixels d;
  const std::size_t lanes = hn::Lanes(d);
  const auto share = hn::Set(d, share_of_tap(shape));
  for_each_window(shape, [&](const Window& window) HWY_ATTR {
    const Quad quad = quad_of(shape, window);
    for (std::size_t n = 0; n < static_cast<std::size_t>(shape.batch); n += lanes) {
      auto sum = hn::Add(hn::LoadU(d, x + quad.upper_left + n), hn::LoadU(d, x + quad.upper_right + n));
      sum = hn::Add(sum, hn::LoadU(d, x + quad.lower_left + n));
      sum = hn::Add(sum, hn::LoadU(d, x + quad.lower_right + n));
      hn::StoreU(hn::Mul(sum, share), d, y + window.y_offset + n);
    }
  });
}

void avg_any_forward(const Pool2dShape& shape, const float* x, float* y) {
  const Pixels d;
  const std::size_t lanes = hn::Lanes(d);
  const auto share = hn::Set(d, share_of_tap(shape));
  for_each_window(shape, [&](const Window& window) HWY_ATTR {
    for (std::size_t n = 0; n < static_cast<std::size_t>(shape.batch); n += lanes) {
      auto sum = hn::Zero(d);
      for_each_tap(shape, window, [&](int, std::size_t offset) HWY_ATTR {
        sum = hn::Add(sum, hn::LoadU(d, x + offset + n));
      });
      hn::StoreU(hn::Mul(sum, share), d, y + window.y_offset + n);
    }
  });
}

void avg_halving_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  const Pixels d;
  const std::size_t lanes = hn::Lanes(d);
  const auto share = hn::Set(d, share_of_tap(shape));
  zero_odd_edges(shape, dx);
  for_each_window(shape, [&](const Window& window) HWY_ATTR {
    const Quad quad = quad_of(shape, window);
    for (std::size_t n = 0; n < static_cast<std::size_t>(shape.batch); n += lanes) {
      const auto gradient = hn::Mul(hn::LoadU(d, dy + window.y_offset + n), share);
      hn::StoreU(gradient, d, dx + quad.upper_left + n);
      hn::StoreU(gradient, d, dx + quad.upper_right + n);
      hn::StoreU(gradient, d, dx + quad.lower_left + n);
      hn::StoreU(gradient, d, dx + quad.lower_right + n);
    }
  });
}

void avg_any_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  const Pixels d;
  const std::size_t lanes = hn::Lanes(d);
  const auto share = hn::Set(d, share_of_tap(shape));
  std::fill_n(dx, shape.in_size(), 0.0F);
  for_each_window(shape, [&](const Window& window) HWY_ATTR {
    for (std::size_t n = 0; n < static_cast<std::size_t>(shape.batch); n += lanes) {
      const auto gradient = hn::Mul(hn::LoadU(d, dy + window.y_offset + n), share);
      for_each_tap(shape, window, [&](int, std::size_t offset) HWY_ATTR {
        float* pixel = dx + offset + n;
        hn::StoreU(hn::Add(hn::LoadU(d, pixel), gradient), d, pixel);
      });
    }
  });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(avg_halving_forward);
HWY_EXPORT(avg_any_forward);
HWY_EXPORT(avg_halving_backward);
HWY_EXPORT(avg_any_backward);

void avg_pool_forward(const Pool2dShape& shape, const float* x, float* y) {
  if (is_halving(shape)) {
    HWY_DYNAMIC_DISPATCH(avg_halving_forward)(shape, x, y);
  } else {
    HWY_DYNAMIC_DISPATCH(avg_any_forward)(shape, x, y);
  }
}

void avg_pool_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  if (is_halving(shape)) {
    HWY_DYNAMIC_DISPATCH(avg_halving_backward)(shape, dy, dx);
  } else {
    HWY_DYNAMIC_DISPATCH(avg_any_backward)(shape, dy, dx);
  }
}

}  // namespace lockstep::cpu
#endif
