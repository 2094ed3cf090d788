// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What convolutions and matrix products are called with, and the scratch memory of their threads.
#pragma once

#include "common/buffers.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

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

// Which taps of a filter touch which pixels: the one place that knows stride and padding.

/// Along one axis, the taps that a target pixel sums over: source pixels source, source + 1, ... (`count` of
/// them), the first one through filter tap `tap`, the next ones through tap + step, tap + 2 * step, ...
struct TapRange {
  int source = 0;
  int tap = 0;
  int count = 0;
};

/// Forward: output pixel p sums input pixels p * stride - padding + r; tap step 1.
inline std::vector<TapRange> forward_taps(int in, int out, int kernel, int stride, int padding) {
  std::vector<TapRange> ranges(static_cast<std::size_t>(out));
  for (int p = 0; p < out; ++p) {
    const int start = p * stride - padding;
    const int first = std::max(0, -start), end = std::min(kernel, in - start);
    if (first < end) ranges[static_cast<std::size_t>(p)] = {start + first, first, end - first};
  }
  return ranges;
}

/// Data gradient: input pixel h sums output pixels p with h = p * stride - padding + r; tap step -stride.
inline std::vector<TapRange> backward_taps(int in, int out, int kernel, int stride, int padding) {
  std::vector<TapRange> ranges(static_cast<std::size_t>(in));
  for (int h = 0; h < in; ++h) {
    const int last_tap = h + padding;  // the tap through which h reaches output pixel 0
    const int first = last_tap < kernel ? 0 : (last_tap - kernel) / stride + 1;
    const int end = std::min(out, last_tap / stride + 1);
    if (first < end) ranges[static_cast<std::size_t>(h)] = {first, last_tap - first * stride, end - first};
  }
  return ranges;
}

/// Target [targets, target_rows, target_columns, batch] from source [sources, source_rows, source_columns,
/// batch]: what forward and data gradient have in common.
struct Correlation {
  int batch = 0;
  int sources = 0, source_rows = 0, source_columns = 0;
  int targets = 0;
  int kernel_rows = 0, kernel_columns = 0;
  int tap_step = 1;
  std::ptrdiff_t weight_target = 0,
                 weight_source = 0;     ///< floats between filters of two targets, of two sources
  std::vector<TapRange> rows, columns;  ///< for each row and each column of the target
};

/// c[i][j] = start[i] + sum over d of a(i, d) * b[d][j], for rows i, columns j and depth d: a chain for each `block`
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
