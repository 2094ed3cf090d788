// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads samples from a data set and makes them batch-innermost.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/mix.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gather.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

// Images of random samples, one byte a pixel, to batch-innermost floats: a transposition of 16 x 16 bytes in
// registers. Its limit is memory, so the rows of the next 16 samples are prefetched meanwhile.

constexpr int kTile = 16;  ///< samples and pixels of one transposition
constexpr int kCacheLineBytes = 64;

/// The rows of 16 samples in the data set; `real` of them are asked for, the others repeat the first.
struct RowGroup {
  const std::uint8_t* row[kTile];
  int real;
};

/// Normalisation of the pixels of each channel: byte * scale + shift.
struct Affines {
  const float* scale;
  const float* shift;
};

RowGroup rows_of_group(const GatherShape& shape, const std::uint8_t* const* rows, int first) {
  RowGroup group = {};
  group.real = std::clamp(shape.samples - first, 0, kTile);
  for (int i = 0; i < kTile && group.real > 0; ++i) group.row[i] = rows[first + (i < group.real ? i : 0)];
  return group;
}

HWY_INLINE void prefetch_line(const RowGroup& group, int feature) {
  for (int i = 0; i < group.real; ++i) hwy::Prefetch(group.row[i] + feature);
}

/// tile[f][i] = row[i][first + f] for any number of pixels of 16 samples, byte by byte.
void transpose_bytes(const RowGroup& group, int first, int features, std::uint8_t* tile) {
  for (int f = 0; f < features; ++f) {
    for (int i = 0; i < kTile; ++i) tile[f * kTile + i] = group.row[i][first + f];
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose_tile(const RowGroup& group, int first, std::uint8_t* tile) {
  transpose_bytes(group, first, kTile, tile);
}
#else
using Bytes = hn::FixedTag<std::uint8_t, kTile>;
using ByteRow = hn::Vec<Bytes>;

/// One of the four equal steps of the transposition. Row i is dealt out with row i + 8, byte by byte.
HWY_INLINE void interleave_halves(const ByteRow* from, ByteRow* to) {
  const Bytes d;
  for (int i = 0; i < kTile / 2; ++i) {
    to[2 * i] = hn::InterleaveLower(d, from[i], from[i + kTile / 2]);
    to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + kTile / 2]);
  }
}

/// tile[f][i] = row[i][first + f] for 16 pixels of 16 samples.
HWY_INLINE void transpose_tile(const RowGroup& group, int first, std::uint8_t* tile) {
  const Bytes d;
  ByteRow rows[kTile];
  ByteRow other[kTile];
  for (int i = 0; i < kTile; ++i) rows[i] = hn::LoadU(d, group.row[i] + first);
  interleave_halves(rows, other);
  interleave_halves(other, rows);
  interleave_halves(rows, other);
  interleave_halves(other, rows);
  for (int f = 0; f < kTile; ++f) hn::Store(rows[f], d, tile + f * kTile);
}

#endif

/// x = byte * scale + shift for the 16 samples of each feature of a tile. 0 in columns from `real` on.
HWY_INLINE void store_tile(const std::uint8_t* tile, int features, int batch, int real,
                           const Affines& affines, int channel, float* x) {
  const hn::CappedTag<float, kTile> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(di)> d8;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto scale = hn::Set(d, affines.scale[channel]);
  const auto shift = hn::Set(d, affines.shift[channel]);
  for (int n = 0; n < kTile; n += lanes) {
    const auto is_real = hn::FirstN(d, static_cast<std::size_t>(std::clamp(real - n, 0, lanes)));
    for (int f = 0; f < features; ++f) {
      const auto bytes = hn::LoadU(d8, tile + f * kTile + n);
      const auto value = multiply_add(hn::ConvertTo(d, hn::PromoteTo(di, bytes)), scale, shift);
      hn::StoreU(hn::IfThenElseZero(is_real, value), d, x + std::size_t{1} * f * batch + n);
    }
  }
}

/// A tile that holds pixels of several channels, of one that is not the only one, or fewer than others.
void store_by_channel(const GatherShape& shape, const std::uint8_t* tile, int first, int features, int real,
                      const Affines& affines, float* x) {
  const int plane = shape.features / shape.channels;
  for (int f = 0; f < features;) {
    const int channel = (first + f) / plane;
    const int end = std::min(features, (channel + 1) * plane - first);
    store_tile(tile + f * kTile, end - f, shape.batch, real, affines, channel,
               x + std::size_t{1} * f * shape.batch);
    f = end;
  }
}

/// Writes 16 columns, zeros if none is real, while the lines of the next group's rows are on their way.
void gather_group(const GatherShape& shape, const RowGroup& group, const RowGroup& next,
                  const Affines& affines, float* x) {
  if (group.real == 0) {
    for (int f = 0; f < shape.features; ++f, x += shape.batch) std::fill_n(x, kTile, 0.0F);
    return;
  }
  HWY_ALIGN std::uint8_t tile[kTile * kTile];
  for (int first = 0; first < shape.features; first += kTile) {
    if (first % kCacheLineBytes == 0) prefetch_line(next, first);
    const int features = std::min(kTile, shape.features - first);
    const bool full = features == kTile;
    full ? transpose_tile(group, first, tile) : transpose_bytes(group, first, features, tile);
    if (full && shape.channels == 1)
      store_tile(tile, kTile, shape.batch, group.real, affines, 0, x);
    else
      store_by_channel(shape, tile, first, features, group.real, affines, x);
    x += std::size_t{1} * features * shape.batch;
  }
}

void gather_images(const GatherShape& shape, const std::uint8_t* const* rows, const float* scale,
                   const float* shift, float* x) {
  RowGroup group = rows_of_group(shape, rows, 0);
  for (int f = 0; f < shape.features; f += kCacheLineBytes) prefetch_line(group, f);
  for (int n = 0; n < shape.batch; n += kTile) {
    const RowGroup next = rows_of_group(shape, rows, n + kTile);
    gather_group(shape, group, next, {scale, shift}, x + n);
    group = next;
  }
}

void gather_rows(const GatherShape& shape, const std::uint8_t* rows, int real, const float* scale,
                 const float* shift, float* x) {
  RowGroup group = {.row = {}, .real = real};
  for (int i = 0; i < kTile; ++i) group.row[i] = rows + std::size_t{1} * (i < real ? i : 0) * shape.features;
  gather_group(shape, group, {}, {scale, shift}, x);
}

void separate_rgb(std::size_t count, const std::uint8_t* HWY_RESTRICT pixels, std::uint8_t* HWY_RESTRICT red,
                  std::uint8_t* HWY_RESTRICT green, std::uint8_t* HWY_RESTRICT blue) {
  for (std::size_t i = 0; i < count; ++i) {
    red[i] = pixels[3 * i];
    green[i] = pixels[3 * i + 1];
    blue[i] = pixels[3 * i + 2];
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(gather_images);

void gather_images(const GatherShape& shape, const std::uint8_t* const* rows, const float* scale,
                   const float* shift, float* x) {
  HWY_DYNAMIC_DISPATCH(gather_images)(shape, rows, scale, shift, x);
}

HWY_EXPORT(separate_rgb);

void separate_rgb(std::size_t count, const std::uint8_t* pixels, std::uint8_t* red, std::uint8_t* green,
                  std::uint8_t* blue) {
  HWY_DYNAMIC_DISPATCH(separate_rgb)(count, pixels, red, green, blue);
}

HWY_EXPORT(gather_rows);

/// Makes the images of 16 samples in separate memory, which stays in the cache, and gathers them from there. After
/// them is room for a partner.
void gather_augmented(const GatherShape& shape, const std::uint8_t* const* images, const std::int32_t* index,
                      const float* scale, const float* shift, const AugmentPlan& plan, std::int64_t epoch,
                      const MixedImages& mixed, float* x) {
  constexpr int kGroup = 16;
  const std::size_t features = shape.features;
  const auto rows = std::make_unique_for_overwrite<std::uint8_t[]>((kGroup + 1) * features);
  for (int n = 0; n < shape.batch; n += kGroup) {
    const int real = std::clamp(shape.samples - n, 0, kGroup);
    for (int i = 0; i < real; ++i) {
      std::uint8_t *const row = rows.get() + i * features, *const partner = rows.get() + kGroup * features;
      augment_image(plan, epoch, index[n + i], images[n + i], row);
      if (mixed.mixes == nullptr || !mixed.mixes[n + i].is_mixed()) continue;
      augment_image(plan, epoch, mixed.mixes[n + i].partner, mixed.partners[n + i], partner);
      mix_images(plan, mixed.mixes[n + i], partner, row);
    }
    HWY_DYNAMIC_DISPATCH(gather_rows)(shape, rows.get(), real, scale, shift, x + n);
  }
}

/// In tiles of 16 x 16: one cache line of each sample and of each feature.
void gather_features(const GatherShape& shape, const float* features, const std::int32_t* index, float* x) {
  constexpr int kSide = 16;
  for (int first = 0; first < shape.batch; first += kSide) {
    for (int feature = 0; feature < shape.features; feature += kSide) {
      const int end = std::min(feature + kSide, shape.features);
      for (int n = first; n < first + kSide; ++n) {
        const float* const row =
            n < shape.samples ? features + std::size_t{1} * index[n] * shape.features : nullptr;
        for (int f = feature; f < end; ++f)
          x[std::size_t{1} * f * shape.batch + n] = row != nullptr ? row[f] : 0.0F;
      }
    }
  }
}

}  // namespace lockstep::cpu
#endif
