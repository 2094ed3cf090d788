// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that the weight gradient reads. They are as they are, where its tiles know the edges; or have their padding
/// made real, so that its inner loop never meets one; or lack the pixels that a filter of 1x1 passes over.
#pragma once

#include "kernels/cpu/operands.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::cpu {

/// A filter of 1x1 with a stride reads some pixels of x. Those alone are an image for one without a stride.
inline bool skips_pixels(const Conv2dShape& s) {
  return s.kernel_height == 1 && s.kernel_width == 1 && s.padding == 0 && s.stride > 1;
}
inline Conv2dShape without_skipped(Conv2dShape s) {
  const int height = s.out_height(), width = s.out_width();
  s.stride = 1, s.in_height = height, s.in_width = width;
  return s;
}
inline const float* copy_read_pixels(const Conv2dShape& s, const float* x, Scratch& scratch) {
  const std::size_t height = s.out_height(), width = s.out_width(), batch = s.batch;
  float* const read = scratch.floats(s.in_channels * height * width * batch);
  float* to = read;
  for (int c = 0; c < s.in_channels; ++c, x += std::size_t{1} * s.in_height * s.in_width * batch) {
    for (std::size_t pixel = 0; pixel < height * width; ++pixel) {
      const std::size_t row = pixel / width * s.stride, column = pixel % width * s.stride;
      to = std::copy_n(x + (row * s.in_width + column) * batch, batch, to);
    }
  }
  return read;
}

/// Range that a term of the gradient sums over: rows of output pixels, samples.
struct TermRange {
  int first_row = 0, last_row = 0;        ///< [first, last); may be none
  int first_sample = 0, last_sample = 0;  ///< [first, last); may be none
};

/// The image that terms read: x itself, or a copy of the term's rows. Tiles know the padding of x, if it has any. A
/// copy has a frame of zeros, in which every tap of every output pixel lies, and holds a few channels at a time: caches
/// hold them, and their places go round.
class TermImage {
 public:
  /// @param is_copy    false: x itself
  /// @param taps       neighbours in the order of the filter that are read at a time, at most
  /// @param most_rows  rows of output pixels of a term, at most
  TermImage(const Conv2dShape& s, bool is_copy, std::size_t taps, int most_rows, Scratch& scratch)
      : s_(s),
        scratch_(scratch),
        is_copy_(is_copy),
        slots_(s.in_channels),
        rows_(is_copy ? rows_of(most_rows) : s.in_height),
        width_(is_copy ? s.in_width + 2 * s.padding : s.in_width),
        batch_(s.batch) {
    const auto filter = static_cast<std::size_t>(s.kernel_height) * static_cast<std::size_t>(s.kernel_width);
    if (is_copy_) slots_ = std::min(slots_, (taps + filter - 2) / filter + 1);
  }

  /// Offsets of tap (c, r, q) of output pixel (0, 0) from begin(), in floats, in the filter's order.
  std::vector<std::size_t> tap_offsets() const {
    std::vector<std::size_t> offsets;
    offsets.reserve(std::size_t{1} * s_.in_channels * s_.kernel_height * s_.kernel_width);
    for (int c = 0; c < s_.in_channels; ++c) {
      for (int r = 0; r < s_.kernel_height; ++r) {
        const std::size_t row = (c % slots_ * rows_ + r * s_.dilation) * width_;
        for (int q = 0; q < s_.kernel_width; ++q) offsets.push_back((row + q * s_.dilation) * batch_);
      }
    }
    return offsets;
  }

  /// @param x  [in_channels, height, width, batch]
  /// @returns the place where the image would begin; only what the term reads of it is there
  const float* begin(const float* x, const TermRange& term) {
    x_ = x;
    if (!is_copy_) return x - s_.padding * (width_ + 1) * batch_;
    term_ = term;
    next_ = 0;
    data_ = scratch_.floats(slots_ * rows_ * width_ * batch_);
    return data_ - term.first_row * s_.stride * width_ * batch_;
  }

  /// Before taps of the channels [first, last) are read.
  void need(std::size_t first, std::size_t last) {
    if (!is_copy_ || term_.first_row == term_.last_row) return;
    if (first + slots_ < next_) next_ = first;  // another one has its place
    for (; next_ < last; ++next_) copy(next_);
  }

 private:
  /// Rows of the image that so many rows of output pixels read.
  std::size_t rows_of(int rows) const { return (rows - 1) * s_.stride + s_.reach_height(); }

  void copy(std::size_t channel) const {
    const std::size_t row = s_.in_width * batch_, side = s_.padding;
    const float* const from = x_ + channel * s_.in_height * row;
    float* to = data_ + channel % slots_ * rows_ * width_ * batch_;
    const std::size_t rows = rows_of(term_.last_row - term_.first_row);
    for (std::size_t line = 0; line < rows; ++line, to += width_ * batch_) {
      const int h = term_.first_row * s_.stride + static_cast<int>(line) - s_.padding;
      if (h < 0 || h >= s_.in_height) {
        clear_pixels(to, width_);
        continue;
      }
      clear_pixels(to, side);
      copy_pixels(from + h * row, to + side * batch_, s_.in_width);
      clear_pixels(to + side * batch_ + row, side);
    }
  }

  // Clears pixels of the term's samples.
  void clear_pixels(float* to, std::size_t count) const {
    for_each_piece(count, [&](std::size_t at, std::size_t size) { std::fill_n(to + at, size, 0.0F); });
  }
  void copy_pixels(const float* from, float* to, std::size_t count) const {
    for_each_piece(count, [&](std::size_t at, std::size_t size) { std::copy_n(from + at, size, to + at); });
  }
  template <class Use>
  void for_each_piece(std::size_t pixels, const Use& use) const {
    if (term_.first_sample == 0 && term_.last_sample == s_.batch) return use(std::size_t{0}, pixels * batch_);
    for (std::size_t at = term_.first_sample; pixels > 0; --pixels, at += batch_)
      use(at, static_cast<std::size_t>(term_.last_sample - term_.first_sample));
  }

  Conv2dShape s_;
  Scratch& scratch_;
  bool is_copy_;
  std::size_t slots_, rows_, width_, batch_;
  const float* x_ = nullptr;
  TermRange term_;
  std::size_t next_ = 0;  ///< channels that were copied
  float* data_ = nullptr;
};

}  // namespace lockstep::cpu
