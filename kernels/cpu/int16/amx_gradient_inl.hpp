// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradients on tiles: 16 filters x 16 channels of a tap, over 64 pixels and samples of a row.
///
/// dy is packed as [filter / 16][row][64 pixels and samples][high, low][16 filters][64]. x is packed as
/// [row][channel / 16][column][sample / 4][16 channels][4 samples], in a frame of zeros; with a stride columns lie by
/// their remainder first. So what a tap reads for a row of dy is one run of lines of 64 bytes. A run's last tile
/// reaches into what follows, times zeros of dy. Few channels are folded as in a product (amx_product_inl.hpp).
#pragma once

#include "kernels/cpu/int16/amx_tiles_inl.hpp"

#include <cstring>

namespace lockstep::cpu::int16 {
namespace {

struct GradientPlan {
  explicit GradientPlan(const GroupGradient& gradient)
      : g(gradient.shape), image(gradient.image), stride(g.x_column / g.batch) {
    const std::size_t taps = g.taps.size() / image.channels;
    const auto row_of = [&](std::size_t tap) { return g.taps[tap] / image.row(); };
    while (column_taps < taps && row_of(column_taps) == 0) ++column_taps;
    row_taps = taps / column_taps;
    const std::size_t folded = (image.channels * row_taps + kSide - 1) / kSide,
                      apart = (image.channels + kSide - 1) / kSide;
    is_folded = 2 * folded <= row_taps * apart;
    rows_of_channel = is_folded ? row_taps : 1;
    blocks = is_folded ? folded : apart;
    rows = is_folded ? g.rows : image.height + 2 * image.frame;
    columns_apart = (image.width + 2 * image.frame + stride - 1) / stride;
    block_words = stride * columns_apart * g.batch * (kSide / 4);
    tiles_of_row = (g.columns * g.batch + kTerms - 1) / kTerms;
  }

  const GradientShape& g;
  const FramedImage& image;
  std::size_t stride = 1, row_taps = 1, column_taps = 0;
  bool is_folded = false;
  std::size_t rows_of_channel = 1;
  std::size_t blocks = 0, rows = 0;  ///< sizes of packed x
  std::size_t columns_apart = 0;     ///< columns of x a stride apart
  std::size_t block_words = 0;       ///< a row of 16 channels
  std::size_t tiles_of_row = 0;      ///< tiles of a row of dy

  std::size_t tap_row(std::size_t tap) const { return g.taps[tap * column_taps] / image.row(); }
  /// The place of a framed column.
  std::size_t column_words(std::size_t column) const {
    return (column % stride * columns_apart + column / stride) * g.batch * (kSide / 4);
  }
  std::size_t tap_words(std::size_t tap) const { return column_words(g.taps[tap] % image.row() / g.batch); }
  std::size_t x_words() const { return rows * blocks * block_words + kTile; }
  /// Those of 16 filters.
  std::size_t dy_words() const { return g.rows * tiles_of_row * 2 * kTile; }
  std::size_t filter_blocks() const { return (g.filters + kSide - 1) / kSide; }
  /// Places of 16 x 16 sums of 16 filters.
  std::size_t places() const { return (is_folded ? 1 : row_taps) * blocks * column_taps; }
};

/// 16 samples.
inline void store_digits(const float* from, const float* first, const float* second, Word* high, Word* low) {
  std::int8_t of_high[kSide], of_low[kSide];  // tells the compiler that they do not overlap others
  for (std::size_t n = 0; n < kSide; ++n) {
    const std::int32_t q = rounded(from[n], first[n], second[n]);
    of_high[n] = static_cast<std::int8_t>(high_digit(q));
    of_low[n] = static_cast<std::int8_t>(q);
  }
  std::memcpy(high, of_high, kSide);
  std::memcpy(low, of_low, kSide);
}

void pack_dy(const GroupGradient& gradient, Word* packed) {
  const GradientShape& g = gradient.shape;
  const std::size_t row_numbers = g.columns * g.batch;
  for (std::size_t k = 0; k < g.filters; k += kSide) {
    for (std::size_t row = 0; row < g.rows; ++row) {
      for (std::size_t begin = 0; begin < row_numbers; begin += kTerms, packed += 2 * kTile) {
        const std::size_t filters = std::min(kSide, g.filters - k),
                          end = std::min(begin + kTerms, row_numbers);
        if (filters < kSide || end < begin + kTerms) std::fill_n(packed, 2 * kTile, 0);
        for (std::size_t i = 0; i < filters; ++i) {
          const float* const from = gradient.dy + (k + i) * g.dy_channel + row * g.dy_row;
          Word* line = packed + i * kSide;
          for (std::size_t at = begin; at < end; at += kSide, line += kSide / 4)
            store_digits(from + at, gradient.of_dy.first.data() + at % g.batch,
                         gradient.of_dy.second.data() + at % g.batch, line, line + kTile);
        }
      }
    }
  }
}

/// 16 words, 4 of each of 4 channels, for loops that compilers would not find.
using Words = Word __attribute__((vector_size(64)));

/// From [channel % 4][channel / 4][4] to [4][channel].
inline void transpose(const Word* words, Word* to) {
  Words from[4], pairs[4], all[4];
  std::memcpy(from, words, sizeof from);
  for (int i = 0; i < 4; i += 2) {
    pairs[i] = __builtin_shufflevector(from[i], from[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,
                                       13, 29);
    pairs[i + 1] = __builtin_shufflevector(from[i], from[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27,
                                           14, 30, 15, 31);
  }
  for (int i = 0; i < 2; ++i) {
    all[2 * i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12,
                                         13, 28, 29);
    all[2 * i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26,
                                             27, 14, 15, 30, 31);
  }
  std::memcpy(to, all, sizeof all);
}

/// One pixel of 16 channels, 16 samples.
inline void pack_square(const ChannelRow* channels, std::size_t pixel, const float* first,
                        const float* second, Word* high, Word* low) {
  Word of_high[4 * kSide], of_low[4 * kSide];
  for (std::size_t i = 0; i < kSide; ++i) {
    const std::size_t place = i % 4 * kSide + i / 4 * 4;
    store_digits(channels[i].numbers + pixel * channels[i].step, first, second, of_high + place,
                 of_low + place);
  }
  transpose(of_high, high);
  transpose(of_low, low);
}

/// The rows of x in a row of packed x, [blocks * 16], from sample n on.
std::vector<ChannelRow> rows_of_x(const GroupGradient& gradient, const GradientPlan& plan, std::size_t row,
                                  std::size_t n) {
  const FramedImage& image = gradient.image;
  std::vector<ChannelRow> channels(plan.blocks * kSide);
  for (std::size_t c = 0; c < image.channels; ++c) {
    for (std::size_t r = 0; r < plan.rows_of_channel; ++r) {
      const std::size_t framed = plan.is_folded ? row * plan.stride + plan.tap_row(r) : row;
      if (framed < image.frame || framed >= image.frame + image.height) continue;
      const std::size_t of_x = c * image.height + framed - image.frame;
      channels[c * plan.rows_of_channel + r] = {gradient.x + of_x * image.width * image.batch + n,
                                                image.batch};
    }
  }
  return channels;
}

void pack_x(const GroupGradient& gradient, const GradientPlan& plan, Word* high, Word* low) {
  static constexpr ChannelRow kFrame[kSide] = {};
  const FramedImage& image = gradient.image;
  for (std::size_t n = 0; n < image.batch; n += kSide) {
    const float *const first = gradient.of_x.first.data() + n, *const second =
                                                                   gradient.of_x.second.data() + n;
    for (std::size_t row = 0; row < plan.rows; ++row) {
      const std::vector<ChannelRow> channels = rows_of_x(gradient, plan, row, n);
      for (std::size_t block = 0; block < plan.blocks; ++block) {
        const std::size_t of_block = (row * plan.blocks + block) * plan.block_words + n * (kSide / 4);
        for (std::size_t column = 0; column < image.width + 2 * image.frame; ++column) {
          const bool is_inside = column >= image.frame && column < image.frame + image.width;
          const std::size_t to = of_block + plan.column_words(column);
          pack_square(is_inside ? &channels[block * kSide] : kFrame, is_inside ? column - image.frame : 0,
                      first, second, high + to, low + to);
        }
      }
    }
  }
}

/// Adds the rows [first, last) of dy.   @param sums  [row of taps][block][tap][16 filters][16 channels]
template <class Tiles>
void add_rows(const GradientPlan& plan, std::size_t first, std::size_t last, const Word* dy, const Word* high,
              const Word* low, SumTiles<Tiles>& tiles, std::int64_t* sums) {
  const std::size_t row_words = plan.tiles_of_row * 2 * kTile;
  for (std::size_t r = 0; r < plan.row_taps / plan.rows_of_channel; ++r) {
    for (std::size_t block = 0; block < plan.blocks; ++block) {
      for (std::size_t tap = 0; tap < plan.column_taps; ++tap, sums += kTile) {
        tiles.clear();
        for (std::size_t row = first; row < last; ++row) {
          const std::size_t of_x = plan.is_folded ? row : row * plan.stride + plan.tap_row(r);
          const std::size_t at = (of_x * plan.blocks + block) * plan.block_words + plan.tap_words(tap);
          tiles.add(dy + row * row_words, high + at, low + at, plan.tiles_of_row);
        }
        tiles.finish();
        for (std::size_t i = 0; i < kTile; ++i) sums[i] += tiles.total(i);
      }
    }
  }
}

/// From the places of add_rows() to [filter][tap].
void scatter_sums(const GradientPlan& plan, std::size_t first, const std::int64_t* sums,
                  std::int64_t* totals) {
  const std::size_t taps = plan.row_taps * plan.column_taps, channels = plan.image.channels;
  const std::size_t filters = std::min(kSide, plan.g.filters - first);
  for (std::size_t r = 0; r < plan.row_taps / plan.rows_of_channel; ++r) {
    for (std::size_t i = 0; i < plan.blocks * kSide; ++i) {
      const std::size_t channel = i / plan.rows_of_channel, tap_row = r + i % plan.rows_of_channel;
      if (channel >= channels) continue;
      for (std::size_t tap = 0; tap < plan.column_taps; ++tap) {
        const std::size_t place = (r * plan.blocks + i / kSide) * plan.column_taps + tap;
        const std::int64_t* const from = sums + place * kTile + i % kSide;
        std::int64_t* const to =
            totals + (first * channels + channel) * taps + tap_row * plan.column_taps + tap;
        for (std::size_t k = 0; k < filters; ++k) to[k * channels * taps] = from[k * kSide];
      }
    }
  }
}

/// The engine's sum_gradients().
template <class Tiles>
void sum_gradients_on_tiles(const GroupGradient& gradient) {
  constexpr std::size_t kCachedWords =
      16 * 1024;  // words of dy, half of which stay in a second-level cache with x's
  const GradientPlan plan(gradient);
  auto* const dy = scratch<Word, ScratchUse::kGradient>(plan.filter_blocks() * plan.dy_words());
  auto* const high = scratch<Word, ScratchUse::kSource>(plan.x_words());
  auto* const low = scratch<Word, ScratchUse::kLowSource>(plan.x_words());
  const std::size_t size = plan.places() * kTile;
  auto* const sums = scratch<std::int64_t, ScratchUse::kTileSums>(size);
  pack_dy(gradient, dy);
  pack_x(gradient, plan, high, low);
  const std::size_t rows = std::max<std::size_t>(1, kCachedWords / (plan.tiles_of_row * 2 * kTile));
  SumTiles<Tiles> tiles;
  const TilesInUse<Tiles> in_use;
  for (std::size_t k = 0; k < plan.filter_blocks(); ++k) {
    std::fill_n(sums, size, 0);
    for (std::size_t row = 0; row < plan.g.rows; row += rows)
      add_rows(plan, row, std::min(row + rows, plan.g.rows), dy + k * plan.dy_words(), high, low, tiles,
               sums);
    scatter_sums(plan, k * kSide, sums, gradient.totals);
  }
}

}  // namespace
}  // namespace lockstep::cpu::int16
