// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A product with one number for each channel of each sample, and the gradient of that number.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scale.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using Scaled = hn::CappedTag<float, 16>;

HWY_INLINE void store_or_add(hn::Vec<Scaled> number, bool adds, float* to) {
  const Scaled d;
  hn::StoreU(adds ? hn::Add(hn::LoadU(d, to), number) : number, d, to);
}

void scale_channels(const ScaleShape& shape, const float* x, const float* scale, bool adds, float* y) {
  const Scaled d;
  const std::size_t batch = shape.batch;
  for (int c = 0; c < shape.channels; ++c, scale += batch) {
    for (int pixel = 0; pixel < shape.pixels; ++pixel, x += batch, y += batch) {
      for (std::size_t n = 0; n < batch; n += hn::Lanes(d))
        store_or_add(hn::Mul(hn::LoadU(d, x + n), hn::LoadU(d, scale + n)), adds, y + n);
    }
  }
}

/// Product of one channel, for the samples of one vector: its pixels are every `stride` numbers.
HWY_INLINE hn::Vec<Scaled> product_of_channel(int pixels, std::size_t stride, const float* a,
                                              const float* b) {
  const Scaled d;
  hn::Vec<Scaled> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int pixel = 0;
  for (; pixel + 4 <= pixels; pixel += 4, a += 4 * stride, b += 4 * stride) {
    for (std::size_t k = 0; k < 4; ++k)
      sums[k] = multiply_add(hn::LoadU(d, a + k * stride), hn::LoadU(d, b + k * stride), sums[k]);
  }
  for (std::size_t k = 0; pixel < pixels; ++pixel, ++k)
    sums[k] = multiply_add(hn::LoadU(d, a + k * stride), hn::LoadU(d, b + k * stride), sums[k]);
  return hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
}

void sum_products(const ScaleShape& shape, const float* a, const float* b, bool adds, float* y) {
  const Scaled d;
  const std::size_t batch = shape.batch, channel = batch * shape.pixels;
  for (int c = 0; c < shape.channels; ++c, a += channel, b += channel, y += batch) {
    for (std::size_t n = 0; n < batch; n += hn::Lanes(d))
      store_or_add(product_of_channel(shape.pixels, batch, a + n, b + n), adds, y + n);
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(scale_channels);
HWY_EXPORT(sum_products);

void scale_channels(const ScaleShape& shape, const float* x, const float* scale, bool adds, float* y) {
  HWY_DYNAMIC_DISPATCH(scale_channels)(shape, x, scale, adds, y);
}

void sum_products(const ScaleShape& shape, const float* a, const float* b, bool adds, float* y) {
  HWY_DYNAMIC_DISPATCH(sum_products)(shape, a, b, adds, y);
}

}  // namespace lockstep::cpu
#endif
