// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Average-pooling: of windows, and of whole channels.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/avg_pool.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/highway.h"
#include "kernels/cpu/pool_window_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Average-pooling: a lane is a sample, so a window is a few additions of whole vectors.

using Pixels = hn::CappedTag<float, 16>;

HWY_INLINE float share_of_tap(const Pool2dShape& shape) {
  return 1.0F / static_cast<float>(shape.kernel * shape.kernel);
}

void avg_halving_forward(const Pool2dShape& shape, const float* x, float* y) {
  const Pixels d;
  const auto share = hn::Set(d, share_of_tap(shape));
  for_each_quad(shape, hn::Lanes(d), [&](const Quad& quad) HWY_ATTR {
    auto sum = hn::Add(hn::LoadU(d, x + quad.upper_left), hn::LoadU(d, x + quad.upper_right));
    sum = hn::Add(sum, hn::LoadU(d, x + quad.lower_left));
    sum = hn::Add(sum, hn::LoadU(d, x + quad.lower_right));
    hn::StoreU(hn::Mul(sum, share), d, y + quad.y);
  });
}

void avg_halving_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  const Pixels d;
  const auto share = hn::Set(d, share_of_tap(shape));
  zero_odd_edges(shape, dx);
  for_each_quad(shape, hn::Lanes(d), [&](const Quad& quad) HWY_ATTR {
    const auto gradient = hn::Mul(hn::LoadU(d, dy + quad.y), share);
    hn::StoreU(gradient, d, dx + quad.upper_left);
    hn::StoreU(gradient, d, dx + quad.upper_right);
    hn::StoreU(gradient, d, dx + quad.lower_left);
    hn::StoreU(gradient, d, dx + quad.lower_right);
  });
}

// Windows of any kind. share_of(window) is what a pixel counts in it.

template <class Shape, class Share>
HWY_INLINE void average(const Shape& shape, int out_height, int out_width, const Share& share_of,
                        const float* x, float* y) {
  const Pixels d;
  const std::size_t batch = shape.batch, lanes = hn::Lanes(d);
  for_each_window(shape, out_height, out_width, [&](const PoolWindow& window) HWY_ATTR {
    const auto share = hn::Set(d, share_of(window));
    for (std::size_t n = 0; n < batch; n += lanes) {
      auto sum = hn::Zero(d);
      for_each_tap(shape, window, [&](int, int, std::size_t offset) HWY_ATTR {
        sum = hn::Add(sum, hn::LoadU(d, x + offset + n));
      });
      hn::StoreU(hn::Mul(sum, share), d, y + window.y_offset + n);
    }
  });
}

template <class Shape, class Share>
HWY_INLINE void average_backward(const Shape& shape, int out_height, int out_width, const Share& share_of,
                                 const float* dy, float* dx) {
  const Pixels d;
  const std::size_t batch = shape.batch, lanes = hn::Lanes(d);
  std::fill_n(dx, shape.in_size(), 0.0F);
  for_each_window(shape, out_height, out_width, [&](const PoolWindow& window) HWY_ATTR {
    const auto share = hn::Set(d, share_of(window));
    for (std::size_t n = 0; n < batch; n += lanes) {
      const auto gradient = hn::Mul(hn::LoadU(d, dy + window.y_offset + n), share);
      for_each_tap(shape, window, [&](int, int, std::size_t offset) HWY_ATTR {
        float* pixel = dx + offset + n;
        hn::StoreU(hn::Add(hn::LoadU(d, pixel), gradient), d, pixel);
      });
    }
  });
}

void avg_forward(const Pool2dShape& shape, const float* x, float* y) {
  if (shape.is_halving()) return avg_halving_forward(shape, x, y);
  const float share = share_of_tap(shape);
  average(
      shape, shape.out_height(), shape.out_width(), [&](const PoolWindow&) { return share; }, x, y);
}

void avg_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  if (shape.is_halving()) return avg_halving_backward(shape, dy, dx);
  const float share = share_of_tap(shape);
  average_backward(
      shape, shape.out_height(), shape.out_width(), [&](const PoolWindow&) { return share; }, dy, dx);
}

HWY_INLINE float share_of_window(const PoolWindow& window) {
  return 1.0F / static_cast<float>((window.rows.end - window.rows.begin) *
                                   (window.columns.end - window.columns.begin));
}

void adaptive_avg_forward(const AdaptivePoolShape& shape, const float* x, float* y) {
  average(shape, shape.out_height, shape.out_width, share_of_window, x, y);
}

void adaptive_avg_backward(const AdaptivePoolShape& shape, const float* dy, float* dx) {
  average_backward(shape, shape.out_height, shape.out_width, share_of_window, dy, dx);
}

// The mean of each whole channel. A lane is a sample, and four sums alternate, so that none waits for the one before.

/// Sum of one channel, for the samples of one vector: its pixels are every `stride` numbers.
HWY_INLINE hn::Vec<Pixels> sum_of_channel(int pixels, std::size_t stride, const float* x) {
  const Pixels d;
  auto first = hn::Zero(d), second = hn::Zero(d), third = hn::Zero(d), fourth = hn::Zero(d);
  int pixel = 0;
  for (; pixel + 4 <= pixels; pixel += 4, x += 4 * stride) {
    first = hn::Add(first, hn::LoadU(d, x));
    second = hn::Add(second, hn::LoadU(d, x + stride));
    third = hn::Add(third, hn::LoadU(d, x + 2 * stride));
    fourth = hn::Add(fourth, hn::LoadU(d, x + 3 * stride));
  }
  if (pixel < pixels) first = hn::Add(first, hn::LoadU(d, x));
  if (pixel + 1 < pixels) second = hn::Add(second, hn::LoadU(d, x + stride));
  if (pixel + 2 < pixels) third = hn::Add(third, hn::LoadU(d, x + 2 * stride));
  return hn::Add(hn::Add(first, second), hn::Add(third, fourth));
}

void global_avg_forward(const ImageShape& shape, int batch, const float* x, float* y) {
  const Pixels d;
  const int pixels = shape.height * shape.width;
  const std::size_t stride = batch, channel = stride * pixels;
  const auto share = hn::Set(d, 1.0F / static_cast<float>(pixels));
  for (int c = 0; c < shape.channels; ++c, x += channel, y += stride) {
    for (std::size_t n = 0; n < stride; n += hn::Lanes(d))
      hn::StoreU(hn::Mul(sum_of_channel(pixels, stride, x + n), share), d, y + n);
  }
}

void global_avg_backward(const ImageShape& shape, int batch, const float* dy, float* dx) {
  const Pixels d;
  const int pixels = shape.height * shape.width;
  const std::size_t stride = batch;
  const auto share = hn::Set(d, 1.0F / static_cast<float>(pixels));
  for (int c = 0; c < shape.channels; ++c, dy += stride) {
    for (int pixel = 0; pixel < pixels; ++pixel, dx += stride) {
      for (std::size_t n = 0; n < stride; n += hn::Lanes(d))
        hn::StoreU(hn::Mul(hn::LoadU(d, dy + n), share), d, dx + n);
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(avg_forward);
HWY_EXPORT(avg_backward);

void avg_pool_forward(const Pool2dShape& shape, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(avg_forward)(shape, x, y);
}

void avg_pool_backward(const Pool2dShape& shape, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(avg_backward)(shape, dy, dx);
}

HWY_EXPORT(adaptive_avg_forward);
HWY_EXPORT(adaptive_avg_backward);

void adaptive_avg_pool_forward(const AdaptivePoolShape& shape, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(adaptive_avg_forward)(shape, x, y);
}

void adaptive_avg_pool_backward(const AdaptivePoolShape& shape, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(adaptive_avg_backward)(shape, dy, dx);
}

HWY_EXPORT(global_avg_forward);
HWY_EXPORT(global_avg_backward);

void global_avg_pool_forward(const ImageShape& shape, int batch, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(global_avg_forward)(shape, batch, x, y);
}

void global_avg_pool_backward(const ImageShape& shape, int batch, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(global_avg_backward)(shape, batch, dy, dx);
}

}  // namespace lockstep::cpu
#endif
