// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The mean of each whole channel: a lane is a sample, and four sums take turns, so that none waits for the
/// one before.
#include "kernels/cpu/pool.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_global.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Samples = hn::CappedTag<float, 16>;

HWY_INLINE float share_of_pixel(int pixels) {
  return 1.0F / static_cast<float>(pixels);
}

/// One channel of the samples of one vector: pixels are `stride` numbers apart.
HWY_INLINE hn::Vec<Samples> sum_of_channel(int pixels, std::size_t stride, const float* x) {
  const Samples d;
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
  const Samples d;
  const int pixels = shape.height * shape.width;
  const auto stride = static_cast<std::size_t>(batch), channel = stride * static_cast<std::size_t>(pixels);
  const auto share = hn::Set(d, share_of_pixel(pixels));
  for (int c = 0; c < shape.channels; ++c, x += channel, y += stride) {
    for (std::size_t n = 0; n < stride; n += hn::Lanes(d))
      hn::StoreU(hn::Mul(sum_of_channel(pixels, stride, x + n), share), d, y + n);
  }
}

void global_avg_backward(const ImageShape& shape, int batch, const float* dy, float* dx) {
  const Samples d;
  const int pixels = shape.height * shape.width;
  const auto stride = static_cast<std::size_t>(batch);
  const auto share = hn::Set(d, share_of_pixel(pixels));
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
