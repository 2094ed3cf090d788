// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The inverse DCT, the triangle filter and the colours of JPEG, in integers, compiled for each instruction set.
#include "data/pictures/jpeg_pixels.hpp"

#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/pictures/jpeg_pixels.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The transform of eight columns at once, or as many as a register holds.

constexpr std::size_t kSide = 8;
using Wide = hn::CappedTag<std::int32_t, kSide>;
using Half = hn::Rebind<std::int16_t, Wide>;
using V = hn::Vec<Wide>;

/// A number with 13 bits behind the point.
HWY_INLINE V times(V x, std::int32_t factor) {
  return hn::Mul(x, hn::Set(Wide(), factor));
}

/// One dimension of the transform. `x` holds coefficients 0 to 7 and becomes pixels 0 to 7, times 2^13, not rounded.
HWY_INLINE void transform(V (&x)[kSide]) {
  const V sum = times(hn::Add(x[2], x[6]), 4433);    // 0.541196100
  const V even2 = hn::Sub(sum, times(x[6], 15137));  // 1.847759065
  const V even3 = hn::Add(sum, times(x[2], 6270));   // 0.765366865
  const V even0 = hn::ShiftLeft<13>(hn::Add(x[0], x[4])), even1 = hn::ShiftLeft<13>(hn::Sub(x[0], x[4]));
  const V a[4] = {hn::Add(even0, even3), hn::Add(even1, even2), hn::Sub(even1, even2), hn::Sub(even0, even3)};

  const V z3 = hn::Add(x[7], x[3]), z4 = hn::Add(x[5], x[1]);
  const V z5 = times(hn::Add(z3, z4), 9633);  // 1.175875602
  const V z1 = times(hn::Add(x[7], x[1]), -7373),
          z2 = times(hn::Add(x[5], x[3]), -20995);  // 0.899976223, 2.562915447
  const V y3 = hn::Add(z5, times(z3, -16069)),
          y4 = hn::Add(z5, times(z4, -3196));                    // 1.961570560, 0.390180644
  const V b[4] = {hn::Add(times(x[1], 12299), hn::Add(z1, y4)),  // 1.501321110
                  hn::Add(times(x[3], 25172), hn::Add(z2, y3)),  // 3.072711026
                  hn::Add(times(x[5], 16819), hn::Add(z2, y4)),  // 2.053119869
                  hn::Add(times(x[7], 2446), hn::Add(z1, y3))};  // 0.298631336
  for (std::size_t i = 0; i < 4; ++i) {
    x[i] = hn::Add(a[i], b[i]);
    x[7 - i] = hn::Sub(a[i], b[i]);
  }
}

template <int kBits>
HWY_INLINE V rounded(V x) {
  return hn::ShiftRight<kBits>(hn::Add(x, hn::Set(Wide(), 1 << (kBits - 1))));
}

/// Rows become columns.
HWY_INLINE void transpose(const std::int16_t* from, std::int16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t r = 0; r < kSide; ++r)
    for (std::size_t c = 0; c < kSide; ++c) to[c * kSide + r] = from[r * kSide + c];
#else
  const hn::FixedTag<std::int16_t, kSide> row;
  hn::Vec<decltype(row)> x[kSide], mixed[kSide];
  for (std::size_t r = 0; r < kSide; ++r) x[r] = hn::LoadU(row, from + r * kSide);
  for (int round = 0; round < 3; ++round) {  // each moves a bit of the row's number into the column's
    for (std::size_t i = 0; i < kSide / 2; ++i) {
      mixed[2 * i] = hn::InterleaveLower(row, x[i], x[i + kSide / 2]);
      mixed[2 * i + 1] = hn::InterleaveUpper(row, x[i], x[i + kSide / 2]);
    }
    for (std::size_t r = 0; r < kSide; ++r) x[r] = mixed[r];
  }
  for (std::size_t r = 0; r < kSide; ++r) hn::StoreU(x[r], row, to + r * kSide);
#endif
}

/// The columns of `from` transformed, rounded by 2^-kBits, and laid down as rows of `to`.
template <int kBits>
HWY_INLINE void transform_columns(const std::int16_t* from, std::int16_t* to) {
  std::int16_t columns[kSide * kSide];
  const Half half;
  for (std::size_t c = 0; c < kSide; c += hn::Lanes(half)) {
    V x[kSide];
    for (std::size_t r = 0; r < kSide; ++r)
      x[r] = hn::PromoteTo(Wide(), hn::LoadU(half, from + r * kSide + c));
    transform(x);
    for (std::size_t r = 0; r < kSide; ++r)
      hn::StoreU(hn::DemoteTo(half, rounded<kBits>(x[r])), half, columns + r * kSide + c);
  }
  transpose(columns, to);
}

/// A block of nothing but its mean, as many are. The transform would come to the same.
HWY_INLINE bool is_flat(const std::int16_t* numbers) {
  int others = 0;
  for (std::size_t i = 1; i < kSide * kSide; ++i) others |= numbers[i];
  return others == 0;
}

HWY_INLINE void fill(int mean, std::uint8_t* out, std::size_t row_bytes) {
  const auto pixel = static_cast<std::uint8_t>(std::clamp(((mean + 4) >> 3) + 128, 0, 255));
  for (std::size_t r = 0; r < kSide; ++r) std::memset(out + r * row_bytes, pixel, kSide);
}

void inverse_dct(const JpegBlock* blocks, std::size_t count, const std::uint16_t* steps, std::uint8_t* out,
                 std::size_t row_bytes) {
  const Half half;
  const hn::Rebind<std::uint8_t, Half> byte;
  for (std::size_t block = 0; block < count; ++block, out += kSide) {
    std::int16_t numbers[kSide * kSide], passed[kSide * kSide];
    for (std::size_t i = 0; i < kSide * kSide; ++i)
      numbers[i] =
          static_cast<std::int16_t>(static_cast<std::uint16_t>(blocks[block][i]) * std::uint32_t{steps[i]});
    if (is_flat(numbers)) {
      fill(numbers[0], out, row_bytes);
      continue;
    }
    transform_columns<11>(numbers, passed);
    transform_columns<18>(passed, numbers);
    for (std::size_t i = 0; i < kSide * kSide; i += hn::Lanes(half)) {
      const auto pixels = hn::SaturatedAdd(hn::LoadU(half, numbers + i), hn::Set(half, 128));
      hn::StoreU(hn::DemoteTo(byte, pixels), byte, out + i / kSide * row_bytes + i % kSide);
    }
  }
}

// Half the resolution made whole: each new pixel is three quarters of the nearer old one and a quarter of the other.
// What lies between two values goes down and up in turns.

/// Down: three of the nearer row and one of the farther, for each pixel; not divided by 4 yet.
void weigh_rows(const std::uint8_t* near, const std::uint8_t* far, std::size_t width, std::uint16_t* sums) {
  for (std::size_t i = 0; i < width; ++i) sums[i] = static_cast<std::uint16_t>(3 * near[i] + far[i]);
}

/// Across: `width` numbers, more than one and each 2^kBits / 4 times a pixel, become twice as many pixels. At the ends a
/// number is its own neighbour.
template <int kBits, class Number>
HWY_INLINE void widen(const Number* from, std::size_t width, std::uint8_t* to) {
  constexpr int kLeft = kBits == 2 ? 1 : 8, kRight = kBits == 2 ? 2 : 7;  // what is added before the division
  const auto put = [&](std::size_t i, std::size_t left, std::size_t right) HWY_ATTR {
    to[2 * i] = static_cast<std::uint8_t>((3 * from[i] + from[left] + kLeft) >> kBits);
    to[2 * i + 1] = static_cast<std::uint8_t>((3 * from[i] + from[right] + kRight) >> kBits);
  };
  put(0, 0, 1);
  for (std::size_t i = 1; i + 1 < width; ++i) put(i, i - 1, i + 1);
  put(width - 1, width - 2, width - 1);
}

void widen_pixels(const std::uint8_t* from, std::size_t width, std::uint8_t* to) {
  widen<2>(from, width, to);
}

void widen_sums(const std::uint16_t* from, std::size_t width, std::uint8_t* to) {
  widen<4>(from, width, to);
}

// Colours: JFIF's definition, with 16 bits behind the point.

HWY_INLINE std::uint8_t as_pixel(std::int32_t value) {
  return static_cast<std::uint8_t>(std::min(std::max(value, 0), 255));
}

/// @param rgb  three rows of `width` pixels
void ycc_to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red,
                std::size_t width, std::uint8_t* HWY_RESTRICT r, std::uint8_t* HWY_RESTRICT g,
                std::uint8_t* HWY_RESTRICT b) {
  constexpr std::int32_t kHalf = 1 << 15;
  for (std::size_t i = 0; i < width; ++i) {
    const std::int32_t y = luma[i], cb = blue[i] - 128, cr = red[i] - 128;
    r[i] = as_pixel(y + ((91881 * cr + kHalf) >> 16));                // 1.402
    g[i] = as_pixel(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));  // 0.34414, 0.71414
    b[i] = as_pixel(y + ((116130 * cb + kHalf) >> 16));               // 1.772
  }
}

void rgb_to_grey(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, std::size_t width,
                 std::uint8_t* grey) {
  for (std::size_t i = 0; i < width; ++i)
    grey[i] = static_cast<std::uint8_t>((19595 * r[i] + 38470 * g[i] + 7471 * b[i] + 32768) >> 16);
}

}  // namespace
}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(inverse_dct);
HWY_EXPORT(weigh_rows);
HWY_EXPORT(widen_pixels);
HWY_EXPORT(widen_sums);
HWY_EXPORT(ycc_to_rgb);
HWY_EXPORT(rgb_to_grey);

void inverse_dct(const JpegBlock* blocks, std::size_t count, std::span<const std::uint16_t, 64> steps,
                 std::uint8_t* out, std::size_t row_bytes) {
  HWY_DYNAMIC_DISPATCH(inverse_dct)(blocks, count, steps.data(), out, row_bytes);
}

namespace {

/// Rows of one component in the resolution of the picture, made one at a time.
class FullRows {
 public:
  /// @param width  of the picture
  FullRows(const JpegPlane& plane, int width)
      : plane_(plane),
        width_(static_cast<std::size_t>(plane.width)),
        row_(static_cast<std::size_t>(std::max(width, 2 * plane.width))),
        sums_(width_) {}

  const std::uint8_t* row(int y) {
    const bool halved_across = plane_.across == 2 && plane_.down <= 2 && plane_.width > 2;
    const bool halved_down = plane_.down == 2 && (plane_.across == 1 || halved_across);
    const std::uint8_t* near = plane_.row(y / plane_.down);
    if (plane_.across == 1 && plane_.down == 1) return near;
    if (halved_down) {
      HWY_DYNAMIC_DISPATCH(weigh_rows)(near, other_row(y), width_, sums_.data());
      halved_across ? HWY_DYNAMIC_DISPATCH(widen_sums)(sums_.data(), width_, row_.data())
                    : divide_sums(y % 2 == 0);
    } else if (halved_across) {
      HWY_DYNAMIC_DISPATCH(widen_pixels)(near, width_, row_.data());
    } else {
      repeat(near);
    }
    return row_.data();
  }

 private:
  /// The row on the other side of row y of the picture; at the ends, the same.
  const std::uint8_t* other_row(int y) const {
    return plane_.row(std::clamp(y / 2 + (y % 2 == 0 ? -1 : 1), 0, plane_.height - 1));
  }

  void divide_sums(bool is_upper) {
    const int added = is_upper ? 1 : 2;
    for (std::size_t i = 0; i < width_; ++i) row_[i] = static_cast<std::uint8_t>((sums_[i] + added) >> 2);
  }

  void repeat(const std::uint8_t* near) {
    for (std::size_t x = 0, i = 0; x < row_.size(); ++i)
      for (int k = 0; k < plane_.across && x < row_.size(); ++k) row_[x++] = near[std::min(i, width_ - 1)];
  }

  const JpegPlane& plane_;
  std::size_t width_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint16_t> sums_;
};

/// Red, green and blue to the light that is left over by the inks cyan, magenta and yellow.
void to_inks(std::span<std::uint8_t* const, 3> rows, std::size_t width) {
  for (std::uint8_t* row : rows)
    for (std::size_t i = 0; i < width; ++i) row[i] = static_cast<std::uint8_t>(255 - row[i]);
}

}  // namespace

std::vector<std::uint8_t> jpeg_pixels(std::span<const JpegPlane> planes, JpegColours colours, int channels,
                                      int width, int height) {
  const bool is_ycc = colours == JpegColours::kYcc || colours == JpegColours::kYcck;
  const bool has_inks = planes.size() == 4, to_grey = !has_inks && channels == 1;
  const auto columns = static_cast<std::size_t>(width), size = columns * static_cast<std::size_t>(height);
  std::vector<std::uint8_t> pixels(size * (has_inks ? 4 : static_cast<std::size_t>(channels)));
  std::vector<FullRows> full;
  for (const JpegPlane& plane : planes) full.emplace_back(plane, width);
  for (int y = 0; y < height; ++y) {
    std::uint8_t* const to = pixels.data() + static_cast<std::size_t>(y) * columns;
    if (colours == JpegColours::kGrey || (to_grey && is_ycc)) {  // grey is what YCbCr's first component is
      const std::uint8_t* const luma = full[0].row(y);
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
        std::memcpy(to + c * size, luma, columns);
      continue;
    }
    const std::array<const std::uint8_t*, 3> from = {full[0].row(y), full[1].row(y), full[2].row(y)};
    const std::array<std::uint8_t*, 3> rows = {to, to + size, to + 2 * size};
    if (is_ycc) {
      HWY_DYNAMIC_DISPATCH(ycc_to_rgb)(from[0], from[1], from[2], columns, rows[0], rows[1], rows[2]);
    } else if (to_grey) {
      HWY_DYNAMIC_DISPATCH(rgb_to_grey)(from[0], from[1], from[2], columns, to);
    } else {
      for (std::size_t c = 0; c < 3; ++c) std::memcpy(rows[c], from[c], columns);
    }
    if (colours == JpegColours::kYcck) to_inks(rows, columns);
    if (has_inks) std::memcpy(to + 3 * size, full[3].row(y), columns);
  }
  return pixels;
}

}  // namespace lockstep
#endif
