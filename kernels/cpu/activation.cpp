// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ops that work number by number: relu, sums, the smooth activations, dropout.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/activation_math_inl.hpp"
#include "kernels/cpu/for_each_vector_inl.hpp"
#include "kernels/cpu/philox_inl.hpp"
#include "kernels/cpu/sign_bits_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

// ReLU and sums of two tensors, elementwise and SIMD.

void relu_all(std::size_t size, const float* x, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, y + i);
  });
}

using Numbers = hn::CappedTag<float, 16>;

/// The last numbers, fewer than a vector or a byte.
void relu_rest(std::size_t first, std::size_t size, const float* x, float* y, std::uint8_t* positive) {
  for (std::size_t i = first; i < size; ++i) {
    if (i % kByte == 0) positive[i / kByte] = 0;
    if (x[i] > 0) positive[i / kByte] |= static_cast<std::uint8_t>(1U << i % kByte);
    y[i] = x[i] < 0 ? 0 : x[i];
  }
}

void select_rest(std::size_t first, std::size_t size, const std::uint8_t* positive, const float* dy,
                 float* dx) {
  for (std::size_t i = first; i < size; ++i) dx[i] = (positive[i / kByte] >> i % kByte & 1) != 0 ? dy[i] : 0;
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

void add(std::size_t size, const float* a, const float* b, float* y) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

// Activations with a curve, elementwise and SIMD; their arithmetic is that of kernels/numerics/activation_math.inc.

void activation_forward(const ActivationFunction& f, std::size_t size, const float* x, float* y) {
  with_constant(f.kind, [&]<Activation kKind>() HWY_ATTR {
    for_each_vector(size, [&, number = f.number](auto d, std::size_t i) HWY_ATTR {
      const Curve<VectorMath<decltype(d)>, kKind> curve{hn::Set(d, number)};
      hn::StoreU(curve_of(curve, hn::LoadU(d, x + i)), d, y + i);
    });
  });
}

void activation_backward(const ActivationFunction& f, std::size_t size, const float* saved, const float* dy,
                         float* dx) {
  with_constant(f.kind, [&]<Activation kKind>() HWY_ATTR {
    for_each_vector(size, [&, number = f.number](auto d, std::size_t i) HWY_ATTR {
      const Curve<VectorMath<decltype(d)>, kKind> curve{hn::Set(d, number)};
      hn::StoreU(curve_back(curve, hn::LoadU(d, saved + i), hn::LoadU(d, dy + i)), d, dx + i);
    });
  });
}

// Dropout: masks for four units and up to 64 samples at a time from vectorised Philox. They are applied pixel by pixel.

constexpr int kUnitsPerBlock = 4;    ///< the words of one Philox block
constexpr int kColumnsPerTile = 64;  ///< samples whose random numbers are held at a time

/// The first columns of one unit: y = x * scale, or 0 where bits are below the threshold. Its pixels are every
/// shape.batch numbers.
HWY_INLINE void drop_unit(const DropoutShape& shape, const std::uint32_t* bits, int columns, const float* x,
                          float* y) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const auto threshold = hn::Set(d32, dropout_threshold(shape.probability));
  const auto scale = hn::Set(d, 1.0F / (1.0F - shape.probability));
  for (int pixel = 0; pixel < shape.unit_size; ++pixel, x += shape.batch, y += shape.batch) {
    for (int n = 0; n < columns; n += static_cast<int>(hn::Lanes(d))) {
      const auto dropped = hn::RebindMask(d, hn::Lt(hn::Load(d32, bits + n), threshold));
      hn::StoreU(hn::IfThenZeroElse(dropped, hn::Mul(hn::LoadU(d, x + n), scale)), d, y + n);
    }
  }
}

void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y) {
  HWY_ALIGN std::uint32_t bits[kUnitsPerBlock][kColumnsPerTile];
  const std::uint32_t stream = random_stream(RandomUse::kDropout, key.layer);
  for (int first = 0; first < shape.units; first += kUnitsPerBlock) {
    const std::uint32_t block = first / kUnitsPerBlock;
    for (int n = 0; n < shape.batch; n += kColumnsPerTile) {
      const int columns = std::min(kColumnsPerTile, shape.batch - n);
      const std::uint32_t sample = key.first_sample + n;
      philox_blocks(key.seed, {{block, sample, stream, key.step}}, columns, bits);
      for (int u = first; u < std::min(first + kUnitsPerBlock, shape.units); ++u) {
        const std::size_t offset = std::size_t{1} * u * shape.unit_size * shape.batch + n;
        drop_unit(shape, bits[u - first], columns, x + offset, y + offset);
      }
    }
  }
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

HWY_EXPORT(activation_forward);
HWY_EXPORT(activation_backward);

void activation_forward(const ActivationFunction& f, std::size_t size, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(activation_forward)(f, size, x, y);
}

void activation_backward(const ActivationFunction& f, std::size_t size, const float* saved, const float* dy,
                         float* dx) {
  HWY_DYNAMIC_DISPATCH(activation_backward)(f, size, saved, dy, dx);
}

HWY_EXPORT(dropout);

void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(dropout)(shape, key, x, y);
}

}  // namespace lockstep::cpu
#endif
