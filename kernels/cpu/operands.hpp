// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Operands of convolutions and matrix products, the scratch memory of their threads, and how tiles of them are found.
#pragma once

#include "common/buffers.hpp"
#include "hwy/base.h"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

/// Placed before a loop whose trip count is a small constant: unrolled, register tiles stay in registers. And before
/// one of short rows.
#ifdef __clang__
#define LOCKSTEP_UNROLL _Pragma("clang loop unroll(full)")
#define LOCKSTEP_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define LOCKSTEP_UNROLL _Pragma("GCC unroll 32")
#define LOCKSTEP_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif

namespace lockstep::cpu {

/// A buffer that grows and is never given back. Kernels keep one for each purpose, as a thread_local.
class Scratch {
 public:
  /// At least `size` floats on a 64-byte line, valid until the next call; their contents are unspecified.
  float* floats(std::size_t size) {
    if (buffer_.size() < size) buffer_ = AlignedBuffer<float>(size);
    return buffer_.data();
  }

 private:
  AlignedBuffer<float> buffer_;
};

/// Cuts `total` channels into the fewest blocks that fit a register tile, as even as possible. Calls use(first,
/// size) for each.
template <class Use>
HWY_INLINE void for_each_block(std::size_t total, std::size_t limit, const Use& use) {
  const std::size_t blocks = (total + limit - 1) / limit;
  for (std::size_t b = 0, first = 0; b < blocks; ++b) {
    const std::size_t size = total / blocks + (b < total % blocks ? 1 : 0);
    use(first, size);
    first += size;
  }
}

/// {make(1), make(2), ..., make(kCount)}, of constants: a table of functions that are templates of a size.
template <std::size_t kCount, class Make>
constexpr auto make_table(const Make& make) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...> /*sizes*/) {
    return std::array{make(std::integral_constant<std::size_t, kIndex + 1>())...};
  }
  (std::make_index_sequence<kCount>());
}

// Taps of a filter and the pixels that they touch: the one place that knows stride, padding and dilation.

/// Along one axis, the taps that a target pixel sums over. They are `count` source pixels from `source` on, in fixed
/// steps, which pass through filter taps from `tap` on, in fixed steps, too.
struct TapRange {
  int source = 0;
  int tap = 0;
  int count = 0;
};

/// One axis of a convolution. The first `read` of its outputs are read.
struct ConvAxis {
  int in = 0, out = 0, read = 0, kernel = 0, stride = 1, padding = 0, dilation = 1;

  /// Steps of the data gradient: between pixels of dy that meet one pixel of dx, and between their taps.
  int gradient_step() const { return dilation / std::gcd(stride, dilation); }
  int gradient_tap_step() const { return -stride / std::gcd(stride, dilation); }
};

/// Forward: output pixel p sums input pixels p * stride - padding + r * dilation, tap by tap.
inline std::vector<TapRange> forward_taps(const ConvAxis& a) {
  std::vector<TapRange> ranges(static_cast<std::size_t>(a.out));
  for (int p = 0; p < a.read; ++p) {
    const int start = p * a.stride - a.padding;
    const int first = start < 0 ? (a.dilation - 1 - start) / a.dilation : 0;
    const int end = start < a.in ? std::min(a.kernel, (a.in - 1 - start) / a.dilation + 1) : 0;
    if (first < end) ranges[static_cast<std::size_t>(p)] = {start + first * a.dilation, first, end - first};
  }
  return ranges;
}

/// Data gradient: input pixel h sums output pixels p by rising p. h = p * stride - padding + r * dilation.
inline std::vector<TapRange> backward_taps(const ConvAxis& a) {
  const int reach = (a.kernel - 1) * a.dilation + 1, step = a.gradient_step();
  std::vector<TapRange> ranges(static_cast<std::size_t>(a.in));
  for (int h = 0; h < a.in; ++h) {
    const int from_first = h + a.padding;  // pixels from the first one under output pixel 0 to h
    int first = from_first < reach ? 0 : (from_first - reach) / a.stride + 1;
    const int end = std::min(a.read, from_first / a.stride + 1), last_try = std::min(end, first + step);
    while (first < last_try && (from_first - first * a.stride) % a.dilation != 0) ++first;
    if (first < last_try)
      ranges[static_cast<std::size_t>(h)] = {first, (from_first - first * a.stride) / a.dilation,
                                             (end - 1 - first) / step + 1};
  }
  return ranges;
}

/// Target [targets, target_rows, target_columns, batch] from source [sources, source_rows, source_columns, batch]: the
/// form shared by forward pass and data gradient. With several groups, sources and targets are those of one, and the
/// groups follow one another in source, weights and target.
struct Correlation {
  int batch = 0, groups = 1;
  int sources = 0, source_rows = 0, source_columns = 0;
  int targets = 0;
  int kernel_rows = 0, kernel_columns = 0;
  int source_step = 1, tap_step = 1;  ///< steps of both axes, from one tap that a pixel sums over to the next
  int column_period = 1;              ///< columns at this distance have the same taps, but at edges
  std::ptrdiff_t weight_target = 0,
                 weight_source = 0;     ///< floats between filters of two targets, of two sources
  std::vector<TapRange> rows, columns;  ///< for each row and each column of the target

  // Numbers of a target's filter, and of a channel.
  std::size_t filter() const { return std::size_t{1} * sources * kernel_rows * kernel_columns; }
  std::size_t source_channel() const { return std::size_t{1} * source_rows * source_columns * batch; }
  std::size_t target_channel() const { return rows.size() * columns.size() * batch; }
};

/// weights(target, source, tap) → [block of targets][source][tap][target in block], as tiles read them.
/// @tparam Number  float or double
template <class Number>
void pack_weights(const Correlation& c, std::size_t block, const float* weights, Number* packed) {
  const std::ptrdiff_t taps = std::ptrdiff_t{c.kernel_rows} * c.kernel_columns;
  for_each_block(c.targets, block, [&](std::size_t first, std::size_t size) {
    for (std::ptrdiff_t source = 0; source < c.sources; ++source) {
      for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
        const float* from = weights + first * c.weight_target + source * c.weight_source + tap;
        for (std::size_t k = 0; k < size; ++k, from += c.weight_target) *packed++ = *from;
      }
    }
  });
}

/// The correlations of x to y and of dy to dx.
Correlation forward_correlation(const Conv2dShape& shape);
Correlation backward_correlation(const Conv2dShape& shape);

/// In a filter of 1x1, the pixels of the target that have a source pixel, and these source pixels. Like samples, the
/// pixels of a channel are columns of a matrix.
struct PixelPairs {
  std::vector<std::size_t> source, target;  ///< in floats, of a channel
  bool is_dense = true;                     ///< both are all pixels, in order

  explicit PixelPairs(const Correlation& c) {
    const std::size_t batch = c.batch;
    for (std::size_t p = 0; p < c.rows.size(); ++p) {
      for (std::size_t q = 0; q < c.columns.size(); ++q) {
        if (c.rows[p].count == 0 || c.columns[q].count == 0) continue;
        source.push_back((std::size_t{1} * c.rows[p].source * c.source_columns + c.columns[q].source) *
                         batch);
        target.push_back((p * c.columns.size() + q) * batch);
      }
    }
    const auto is_all = [&](const std::vector<std::size_t>& pixels, std::size_t count) {
      return pixels.size() == count && pixels.back() == (count - 1) * batch;
    };
    is_dense = !source.empty() && is_all(source, std::size_t{1} * c.source_rows * c.source_columns) &&
               is_all(target, c.rows.size() * c.columns.size());
  }
};

/// Calls use(first, size, place) for pieces of the columns [n, n + width) that lie in one pixel. They are columns n +
/// first and so on, at `place` in the channel.
template <class Use>
void for_each_pixel(const std::vector<std::size_t>& pixels, std::size_t batch, std::size_t n,
                    std::size_t width, const Use& use) {
  for (std::size_t done = 0, size = 0; done < width; done += size) {
    const std::size_t lane = (n + done) % batch;
    size = std::min(width - done, batch - lane);
    use(done, size, pixels[(n + done) / batch] + lane);
  }
}

/// c[i][j] = start[i] + sum over d of a(i, d) * b[d][j], for rows i, columns j and depth d. A chain for each `block`
/// of d, blocks added in order. Strides are in floats. Rows of b are readable up to a multiple of kLanes columns; c
/// is written up to `columns`.
struct Product {
  std::size_t rows = 0, columns = 0, depth = 0, block = 0;
  const float* a = nullptr;
  std::ptrdiff_t a_row = 0, a_depth = 0;
  const float* b = nullptr;
  std::ptrdiff_t b_depth = 0;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;
  const float* start = nullptr;  ///< null: 0
};

}  // namespace lockstep::cpu
