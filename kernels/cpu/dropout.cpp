// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Dropout: masks for four units and up to 64 samples at a time from vectorised Philox, then applied pixel by
/// pixel.
#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/philox_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kUnitsPerBlock = 4;    ///< the words of one Philox block
constexpr int kColumnsPerTile = 64;  ///< samples whose random numbers are held at a time

/// The first columns of one unit: y = x * scale, or 0 where bits are below the threshold. Pixels are
/// shape.batch numbers apart.
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
    const auto block = static_cast<std::uint32_t>(first / kUnitsPerBlock);
    for (int n = 0; n < shape.batch; n += kColumnsPerTile) {
      const int columns = std::min(kColumnsPerTile, shape.batch - n);
      const std::uint32_t sample = key.first_sample + static_cast<std::uint32_t>(n);
      philox_blocks(key.seed, {{block, sample, stream, key.step}}, columns, bits);
      for (int u = first; u < std::min(first + kUnitsPerBlock, shape.units); ++u) {
        const std::size_t pixel = static_cast<std::size_t>(u) * static_cast<std::size_t>(shape.unit_size);
        const std::size_t offset =
            pixel * static_cast<std::size_t>(shape.batch) + static_cast<std::size_t>(n);
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

HWY_EXPORT(dropout);

void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(dropout)(shape, key, x, y);
}

}  // namespace lockstep::cpu
#endif
