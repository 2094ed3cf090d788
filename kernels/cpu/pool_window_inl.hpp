// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The pixels that a pooling window covers, and the loop over all windows; compiled once for each SIMD target.

#if defined(LOCKSTEP_CPU_POOL_WINDOW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_POOL_WINDOW_INL_HPP
#undef LOCKSTEP_CPU_POOL_WINDOW_INL_HPP
#else
#define LOCKSTEP_CPU_POOL_WINDOW_INL_HPP
#endif

#include "hwy/highway.h"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// The taps [begin, end) of a window, along one dimension, that lie inside the image. Tap t is pixel origin +
/// t.
struct WindowTaps {
  int begin, end, origin;
};

/// @param in, out  sizes of x and y along it
HWY_INLINE WindowTaps taps_inside(const Pool2dShape& shape, int window, int in, int /*out*/) {
  const int origin = window * shape.stride - shape.padding;
  return {std::max(0, -origin), std::min(shape.kernel, in - origin), origin};
}
HWY_INLINE WindowTaps taps_inside(const AdaptivePoolShape& /*shape*/, int window, int in, int out) {
  const AdaptiveWindow pixels(window, in, out);
  return {pixels.begin, pixels.end, 0};
}

/// One window of one channel, for the whole batch. Offsets count numbers from the start of a tensor.
struct PoolWindow {
  WindowTaps rows, columns;
  std::size_t channel_offset;  ///< offset of the channel in x
  std::size_t y_offset;        ///< offset of the window's result in y
};

/// Calls body(window) channel by channel, windows in row-major order.
template <class Shape, class Body>
HWY_INLINE void for_each_window(const Shape& shape, int out_height, int out_width, const Body& body) {
  const std::size_t batch = shape.batch, channel_size = batch * shape.in_height * shape.in_width;
  std::size_t y_offset = 0;
  for (int c = 0; c < shape.channels; ++c) {
    for (int p = 0; p < out_height; ++p) {
      const WindowTaps rows = taps_inside(shape, p, shape.in_height, out_height);
      for (int q = 0; q < out_width; ++q, y_offset += batch)
        body(PoolWindow{rows, taps_inside(shape, q, shape.in_width, out_width), c * channel_size, y_offset});
    }
  }
}

/// Calls body(row, column, offset) for the taps inside the image in row-major order. offset is the start of a tap's
/// pixel in x.
template <class Shape, class Body>
HWY_INLINE void for_each_tap(const Shape& shape, const PoolWindow& window, const Body& body) {
  for (int r = window.rows.begin; r < window.rows.end; ++r) {
    for (int s = window.columns.begin; s < window.columns.end; ++s) {
      const int pixel = (window.rows.origin + r) * shape.in_width + window.columns.origin + s;
      body(r, s, window.channel_offset + std::size_t{1} * pixel * shape.batch);
    }
  }
}

/// Offsets of the pixels of some samples' 2 x 2 window in x, and of its result in y.
struct Quad {
  std::size_t upper_left, upper_right, lower_left, lower_right, y;
};

/// Calls body(quad) for `lanes` samples of each window of a pool that halves, in the order of y.
template <class Body>
HWY_INLINE void for_each_quad(const Pool2dShape& shape, std::size_t lanes, const Body& body) {
  const std::size_t batch = shape.batch, row = batch * shape.in_width, y_row = batch * shape.out_width();
  Quad quad = {};
  for (int c = 0; c < shape.channels; ++c) {
    std::size_t upper = row * c * shape.in_height;
    for (int p = 0; p < shape.out_height(); ++p, upper += 2 * row) {
      const std::size_t y = quad.y;
      for (std::size_t at = upper; quad.y < y + y_row; at += batch) {
        for (const std::size_t end = at + batch; at < end; at += lanes, quad.y += lanes) {
          quad.upper_left = at, quad.upper_right = at + batch;
          quad.lower_left = at + row, quad.lower_right = at + row + batch;
          body(quad);
        }
      }
    }
  }
}

/// Zeroes the last row and column of an odd image, which no 2 x 2 window covers.
HWY_INLINE void zero_odd_edges(const Pool2dShape& shape, float* dx) {
  const std::size_t batch = shape.batch, row_size = batch * shape.in_width;
  for (int c = 0; c < shape.channels; ++c) {
    for (int h = 0; h < shape.in_height; ++h, dx += row_size) {
      if (shape.in_height % 2 == 1 && h == shape.in_height - 1) {
        std::fill_n(dx, row_size, 0.0F);
      } else if (shape.in_width % 2 == 1) {
        std::fill_n(dx + row_size - batch, batch, 0.0F);
      }
    }
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
