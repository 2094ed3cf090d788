// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Calls of a tile for the pixels of a row of a convolution. Their source may be copied for all channels of the
/// target.
#include "kernels/cpu/lanes_tile_inl.hpp"
#include "kernels/cpu/operands.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <cstddef>

#if defined(LOCKSTEP_CPU_CONV2D_WINDOW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_CONV2D_WINDOW_INL_HPP
#undef LOCKSTEP_CPU_CONV2D_WINDOW_INL_HPP
#else
#define LOCKSTEP_CPU_CONV2D_WINDOW_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// Everything in a TileCall that is the same for all pixels of a block of `size` targets.
inline TileCall tile_call(const Correlation& c, std::ptrdiff_t size) {
  const std::ptrdiff_t batch = c.batch;
  TileCall call;
  const ChannelGroups groups(c.sources);
  const int used = pieces(c.sources, groups.per_group);  // groups after them are empty
  call.groups = used;
  call.channels = groups.per_group;
  call.last_channels = c.sources - (used - 1) * groups.per_group;
  call.source_column = batch * c.source_step;
  call.source_row = call.source_column * c.source_columns;
  call.source_channel = c.source_channel();
  call.weight_column = size * c.tap_step;
  call.weight_row = call.weight_column * c.kernel_columns;
  call.weight_channel = size * c.kernel_rows * c.kernel_columns;
  call.source_group = groups.per_group * call.source_channel;
  call.weight_group = groups.per_group * call.weight_channel;
  call.target_lane = c.target_channel();
  return call;
}

/// True if a vector has all samples, so that two pixels are a tile (run_alike).
inline bool runs_pairs(const Correlation& c) {
  return c.batch == static_cast<int>(kVector);
}
/// Columns from one to the next that is looked at. For pairs it is the next with the same taps; others read a row of
/// the source once, in order.
inline std::size_t column_step(const Correlation& c) {
  return runs_pairs(c) ? c.column_period : 1;
}

/// Pixels of a row that alternate in each group of channels. A tile should read the source from the first-level cache,
/// where the windows before left it: one tile for each column of a step, if the windows of all groups fit there.
/// One channel has one group.
inline std::size_t columns_at_once(const Correlation& c, std::size_t vectors) {
  constexpr std::size_t kCachedBytes = 16 * 1024, kColumnsAtOnce = 32;
  const std::size_t pixels = (runs_pairs(c) ? 2 : 1) * column_step(c);
  const bool fits = c.filter() * pixels * vectors * kVector * sizeof(float) <= kCachedBytes;
  return fits && c.sources > 1 ? pixels : kColumnsAtOnce;
}

/// How many of the columns first, first + step, ... before last sum over the same taps as the first one.
inline std::size_t columns_alike(const Correlation& c, std::size_t first, std::size_t last,
                                 std::size_t step) {
  const TapRange& taps = c.columns[first];
  std::size_t count = 1;
  for (std::size_t q = first + step; q < last; q += step, ++count)
    if (c.columns[q].tap != taps.tap || c.columns[q].count != taps.count) break;
  return count;
}

/// Computes pixels with the same taps. Where a vector has all samples, two neighbours are the vectors of one tile: a
/// tile of one vector loads a weight for each product, which two units of multiply-adds wait for.
/// @param size  size of the block of targets
inline void run_alike(const Correlation& c, const TileCall& call, TileFunction tile, std::size_t size) {
  if (!runs_pairs(c) || call.pixels == 1) return tile(call);
  TileCall pairs = call;
  pairs.pixels = call.pixels / 2;
  pairs.source_vector = call.source_pixel;
  pairs.target_vector = call.target_pixel;
  pairs.source_pixel = 2 * call.source_pixel;
  pairs.target_pixel = 2 * call.target_pixel;
  find_tile<true>(size, 2)(pairs);
  if (call.pixels % 2 == 0) return;
  TileCall last = call;
  const auto before = static_cast<std::ptrdiff_t>(call.pixels - 1);
  last.pixels = 1;
  last.source += before * call.source_pixel;
  last.target += before * call.target_pixel;
  tile(last);
}

/// Some neighbouring pixels of a row, group by group, since windows overlap within a channel.
/// @param row    the call of the row: its first target, and the window of a column 0
/// @param size   size of the block of targets
/// @param pixel  floats from a pixel of the source to the next
inline void correlate_columns(const Correlation& c, const TileCall& row, TileFunction tile,
                              std::ptrdiff_t size, std::ptrdiff_t pixel, std::size_t first,
                              std::size_t last) {
  const std::size_t step = column_step(c);
  TileCall call = row;
  call.groups = 1;
  call.target_pixel = static_cast<std::ptrdiff_t>(step) * c.batch;
  for (std::size_t g = 0; g < row.groups; ++g) {
    call.joins = g > 0;
    call.finishes = g + 1 == row.groups;
    call.last_channels = call.finishes ? row.last_channels : row.channels;
    for (std::size_t begin = first; begin < std::min(last, first + step); ++begin) {
      for (std::size_t q = begin; q < last; q += call.pixels * step) {
        const TapRange& column = c.columns[q];
        call.pixels = columns_alike(c, q, last, step);
        if (call.pixels > 1) call.source_pixel = (c.columns[q + step].source - column.source) * pixel;
        call.last_columns = column.count;
        call.source = row.source + g * row.source_group + column.source * pixel;
        call.weights = row.weights + g * row.weight_group + column.tap * size;
        call.target = row.target + q * c.batch;
        run_alike(c, call, tile, size);
      }
    }
  }
}

/// A copy of what some neighbouring pixels of a target row read of all channels, for strides above 1. It is dense:
/// [channel][row][column] of `width` samples. All blocks of targets read it there, one after the
/// other, instead of an image that no cache holds.
class RowWindow {
 public:
  /// @param blocks   blocks of targets
  /// @param weights  weights of all targets
  RowWindow(const Correlation& c, std::size_t width, std::size_t blocks, std::size_t weights)
      : c_(c), width_(width) {
    std::size_t copied_rows = 0;
    for (const TapRange& row : c.rows) {
      rows_ = std::max<std::size_t>(rows_, row.count);
      copied_rows += row.count;
    }
    for (std::size_t q = 1; q < c.columns.size(); ++q)
      step_ = std::max(step_, c.columns[q].source - c.columns[q - 1].source);
    for (at_once_ = c.columns.size(); at_once_ > 1 && floats() > kFloats;) at_once_ = (at_once_ + 1) / 2;
    const std::size_t rows = c.source_rows, image = c.sources * rows * c.source_columns * width;
    is_worth_it_ = step_ > 1 && floats() <= kFloats && weights <= 4 * kFloats && image > kFloats &&
                   kCopies * copied_rows < blocks * rows;
  }

  /// True if copying pays. The image is then read so much less often from beyond the second-level cache, and all
  /// weights, which each window needs, stay in it.
  bool is_worth_it() const { return is_worth_it_; }
  std::size_t columns_at_once() const { return at_once_; }

  /// Copies the window of the target columns [first, last) of a row.
  /// @param source  its first sample
  void copy(const TapRange& row, const float* source, std::size_t first, std::size_t last) {
    static thread_local Scratch scratch;
    int end = 0;
    begin_ = c_.source_columns;
    for (std::size_t q = first; q < last; ++q) {
      const TapRange& column = c_.columns[q];
      if (column.count == 0) continue;
      begin_ = std::min(begin_, column.source);
      end = std::max(end, column.source + (column.count - 1) * c_.source_step + 1);
    }
    columns_ = std::max(end - begin_, 0);
    // An odd number of lines, so that channels do not push each other out of the cache.
    channel_ = ((row.count * columns_ * width_ + kLine - 1) / kLine | 1) * kLine;
    const std::size_t batch = c_.batch;
    float* to = scratch.floats(c_.sources * channel_);
    data_ = to;
    for (int s = 0; s < c_.sources; ++s, to += channel_) {
      for (int r = 0; r < row.count; ++r) {
        const int line = s * c_.source_rows + row.source + r * c_.source_step;
        const float* from = source + (std::size_t{1} * line * c_.source_columns + begin_) * batch;
        for (std::size_t q = 0; q < columns_; ++q, from += batch)
          std::copy_n(from, width_, to + (r * columns_ + q) * width_);
      }
    }
  }

  /// Makes the call read it.
  void use_in(TileCall& call) const {
    call.source = data_ - static_cast<std::ptrdiff_t>(begin_ * width_);
    call.source_column = width_ * c_.source_step;
    call.source_row = columns_ * width_;
    call.source_channel = channel_;
    call.source_group = call.channels * channel_;
  }

 private:
  /// The most floats of a window, which shares the second-level cache with weights.
  static constexpr std::size_t kFloats = 96 * 1024;
  static constexpr std::size_t kCopies = 8;  ///< cost of copying a row, in readings of it

  /// Floats of the largest window.
  std::size_t floats() const {
    const std::size_t reach = (std::size_t{1} * c_.kernel_columns - 1) * c_.source_step + 1;
    const std::size_t columns = std::min<std::size_t>(c_.source_columns, (at_once_ - 1) * step_ + reach);
    return c_.sources * (rows_ * columns * width_ + 2 * kLine);
  }

  const Correlation& c_;
  std::size_t width_, rows_ = 0, at_once_ = 1;
  int step_ = 1;  ///< source columns from one target column to the next
  bool is_worth_it_ = false;
  const float* data_ = nullptr;
  int begin_ = 0;  ///< the first source column in it
  std::size_t columns_ = 0, channel_ = 0;
};

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
