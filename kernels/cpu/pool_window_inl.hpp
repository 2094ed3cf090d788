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

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// The taps [begin, end) of a window, along one dimension, that lie inside the image. Tap t is pixel origin +
/// t.
struct WindowTaps {
  int begin, end, origin;
};

HWY_INLINE WindowTaps taps_inside(const Pool2dShape& shape, int window, int image_size) {
  const int origin = window * shape.stride - shape.padding;
  return {std::max(0, -origin), std::min(shape.kernel, image_size - origin), origin};
}

/// One window of one channel, for the whole batch. Offsets count numbers from the start of a tensor.
struct PoolWindow {
  WindowTaps rows, columns;
  std::size_t channel_offset;  ///< offset of the channel in x
  std::size_t y_offset;        ///< offset of the window's result in y
};

/// Calls body(window) channel by channel, windows in row-major order.
template <class Body>
HWY_INLINE void for_each_window(const Pool2dShape& shape, const Body& body) {
  const auto batch = static_cast<std::size_t>(shape.batch);
  const std::size_t channel_size =
      static_cast<std::size_t>(shape.in_height) * static_cast<std::size_t>(shape.in_width) * batch;
  std::size_t y_offset = 0;
  for (int c = 0; c < shape.channels; ++c) {
    for (int p = 0; p < shape.out_height(); ++p) {
      const WindowTaps rows = taps_inside(shape, p, shape.in_height);
      for (int q = 0; q < shape.out_width(); ++q, y_offset += batch) {
        body(PoolWindow{rows, taps_inside(shape, q, shape.in_width),
                        static_cast<std::size_t>(c) * channel_size, y_offset});
      }
    }
  }
}

/// Calls body(tap, offset) for the taps inside the image in row-major order. tap is row * kernel + column,
/// offset the start of its pixel in x.
template <class Body>
HWY_INLINE void for_each_tap(const Pool2dShape& shape, const PoolWindow& window, const Body& body) {
  for (int r = window.rows.begin; r < window.rows.end; ++r) {
    for (int s = window.columns.begin; s < window.columns.end; ++s) {
      const int pixel = (window.rows.origin + r) * shape.in_width + window.columns.origin + s;
      const std::size_t offset = static_cast<std::size_t>(pixel) * static_cast<std::size_t>(shape.batch);
      body(r * shape.kernel + s, window.channel_offset + offset);
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
  const auto batch = static_cast<std::size_t>(shape.batch);
  const std::size_t row = static_cast<std::size_t>(shape.in_width) * batch;
  const std::size_t y_row = static_cast<std::size_t>(shape.out_width()) * batch;
  Quad quad = {};
  for (int c = 0; c < shape.channels; ++c) {
    std::size_t upper = static_cast<std::size_t>(c) * static_cast<std::size_t>(shape.in_height) * row;
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
  const auto batch = static_cast<std::size_t>(shape.batch);
  const std::size_t row_size = static_cast<std::size_t>(shape.in_width) * batch;
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
