// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The common part of the engines of 16-bit integers: units, rounded operands, and how a call is cut into tiles.
#pragma once

#include "kernels/cpu/operands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep::cpu::int16 {

/// The largest integer of an operand: two balanced digits of 8 bits, 127 * 256 + 127.
inline constexpr float kLargest = 32639;
/// Products are smaller than 2^30, so that a sum of so many is exact in double, in any order.
inline constexpr std::int64_t kExactTerms = std::int64_t{1} << 22;

/// The factors that make integers of numbers of one unit, two since 2^149 is no float, and the unit.
struct Unit {
  float first = 0, second = 1;  ///< first 0: there is nothing but zeros, or padding
  double value = 0;             ///< 2^e; NaN: a number is not finite

  /// @param largest  the bits of the largest magnitude
  static Unit of(std::uint32_t largest) {
    constexpr std::uint32_t kInfinity = 0x7F800000;
    if (largest >= kInfinity) return {0, 1, std::numeric_limits<double>::quiet_NaN()};
    if (largest == 0) return {0, 1, std::ldexp(1.0, -149)};
    const auto magnitude = static_cast<double>(std::bit_cast<float>(largest));
    int e = std::max(-149, std::ilogb(magnitude) - 14);
    if (magnitude > std::ldexp(double{kLargest}, e)) ++e;
    const int first = std::min(-e, 120);
    return {std::ldexp(1.0F, first), std::ldexp(1.0F, -e - first), std::ldexp(1.0, e)};
  }
};

/// The units of all columns of a tensor, as kernels read them.
struct ColumnUnits {
  std::vector<float> first, second;
  std::vector<double> value;

  void set(std::size_t column, const Unit& unit) {
    first[column] = unit.first;
    second[column] = unit.second;
    value[column] = unit.value;
  }
  void resize(std::size_t columns) {
    first.assign(columns, 0);
    second.assign(columns, 1);
    value.assign(columns, 0);
  }
};

/// total * unit, rounded once, where a double might not hold the total.
inline float round_once(std::int64_t total, double unit) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (total > kExact || total < -kExact) {  // the last bit represents all that are cut off
    constexpr std::int64_t kCut = 2048;
    const std::int64_t cut = total / kCut * kCut;
    total = cut == total ? total : (cut + (total < 0 ? -kCut / 2 : kCut / 2));
  }
  return static_cast<float>(static_cast<double>(total) * unit);
}

/// The taps of one target pixel: a grid of channels * rows * columns of source and packed weights. In
/// elements of the engine.
struct TapGrid {
  std::size_t channels = 1, rows = 1, columns = 1;
  std::ptrdiff_t source_channel = 0, source_row = 0, source_column = 0;
  std::ptrdiff_t weight_channel = 0, weight_row = 0, weight_column = 0;
};

/// Some targets of one pixel, for some columns.
template <class Source, class Weight>
struct PixelCall {
  TapGrid taps;
  const Source* source = nullptr;
  const Weight* weights = nullptr;
  const double* units = nullptr;  ///< [columns] of source and weights together
  const float* bias = nullptr;    ///< [targets]; null: zeros
  float* target = nullptr;
  std::ptrdiff_t target_step = 0;  ///< floats from a target to the next one
};

/// Calls use(first, size) for the fewest blocks of at most `limit`, as even as possible.
template <class Use>
void for_each_even_block(std::size_t total, std::size_t limit, const Use& use) {
  const std::size_t blocks = (total + limit - 1) / limit;
  for (std::size_t b = 0, first = 0; b < blocks; ++b) {
    const std::size_t size = total / blocks + (b < total % blocks ? 1 : 0);
    use(first, size);
    first += size;
  }
}

/// Calls run(first target, targets, row, column) for all blocks of targets and all pixels. All weights pass over a
/// pixel's window if the second-level cache holds them; else windows pass over some weights.
template <class Run>
void for_each_target_and_pixel(const Correlation& c, std::size_t targets_of_block, const Run& run) {
  constexpr std::size_t kCachedWeights = 96 * 1024;
  const auto targets = static_cast<std::size_t>(c.targets);
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  for_each_even_block(targets, targets_of_block,
                      [&](std::size_t first, std::size_t size) { blocks.emplace_back(first, size); });
  const auto for_each_pixel = [&](const auto& use) {
    for (std::size_t row = 0; row < c.rows.size(); ++row)
      for (std::size_t column = 0; column < c.columns.size(); ++column) use(row, column);
  };
  if (targets * static_cast<std::size_t>(c.sources) * c.kernel_rows * c.kernel_columns <= kCachedWeights) {
    for_each_pixel([&](std::size_t row, std::size_t column) {
      for (const auto& block : blocks) run(block.first, block.second, row, column);
    });
  } else {
    for (const auto& block : blocks)
      for_each_pixel(
          [&](std::size_t row, std::size_t column) { run(block.first, block.second, row, column); });
  }
}

/// Calls use(place of a weight) in the order of for_each_tile, for steps of one source.
template <class Use>
void for_each_weight(const Correlation& c, std::size_t targets_of_block, const Use& use) {
  const std::ptrdiff_t taps = std::ptrdiff_t{c.kernel_rows} * c.kernel_columns;
  for_each_even_block(
      static_cast<std::size_t>(c.targets), targets_of_block, [&](std::size_t first, std::size_t size) {
        for (std::ptrdiff_t source = 0; source < c.sources; ++source) {
          for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
            std::ptrdiff_t place =
                static_cast<std::ptrdiff_t>(first) * c.weight_target + source * c.weight_source + tap;
            for (std::size_t k = 0; k < size; ++k, place += c.weight_target) use(place);
          }
        }
      });
}

/// One group of a convolution or of its data gradient, in steps of `sources_at_once` channels of the source. A step is
/// one element of the engine. Calls tile(size, columns, call) for all blocks of targets, pixels and columns.
/// @param source    [block of columns][feature][column of the block]
/// @param together  columns of a block
/// @param width_of  the columns of a tile, of so many that are left
/// @param packed    [block of targets][source step][tap][target of the block][numbers_of_weight]
template <class Source, class Weight, class Width, class Tile>
void for_each_tile(const Correlation& c, std::size_t sources_at_once, std::size_t numbers_of_weight,
                   std::size_t targets_of_block, const Source* source, std::size_t together,
                   const Weight* packed, const double* units, const float* bias, float* target,
                   const Width& width_of, const Tile& tile) {
  const auto batch = static_cast<std::size_t>(c.batch);
  const auto taps = static_cast<std::size_t>(c.kernel_rows) * static_cast<std::size_t>(c.kernel_columns);
  const std::size_t steps = (static_cast<std::size_t>(c.sources) + sources_at_once - 1) / sources_at_once;
  const std::size_t pixels = c.rows.size() * c.columns.size();
  for (std::size_t n = 0, width = 0; n < batch; n += width) {
    width = width_of(batch - n);
    const std::size_t in_block = n % together, block = n - in_block;
    const auto source_column = static_cast<std::ptrdiff_t>(std::min(together, batch - block));
    const std::ptrdiff_t source_row = source_column * c.source_columns,
                         source_channel = source_row * c.source_rows;
    const Source* const first_source =
        source + block * steps * static_cast<std::size_t>(source_channel / source_column) + in_block;
    const auto run = [&](std::size_t first, std::size_t size, std::size_t p, std::size_t q) {
      const TapRange &row = c.rows[p], &column = c.columns[q];
      const auto weight_column = static_cast<std::ptrdiff_t>(size * numbers_of_weight);
      const std::ptrdiff_t weight_row = weight_column * c.kernel_columns;
      const auto weight_channel = weight_column * static_cast<std::ptrdiff_t>(taps);
      const bool is_product = taps == 1 && row.count == 1 && column.count == 1;  // one long row of channels
      PixelCall<Source, Weight> call;
      call.taps = is_product ? TapGrid{1, 1, steps, 0, 0, source_channel, 0, 0, weight_channel}
                             : TapGrid{steps,
                                       static_cast<std::size_t>(row.count),
                                       static_cast<std::size_t>(column.count),
                                       source_channel,
                                       source_row * c.source_step,
                                       source_column * c.source_step,
                                       weight_channel,
                                       weight_row * c.tap_step,
                                       weight_column * c.tap_step};
      if (row.count == 0 || column.count == 0) call.taps.channels = call.taps.rows = 0;
      call.source = first_source + source_row * row.source + source_column * column.source;
      call.weights = packed + first * steps * taps * numbers_of_weight + weight_row * row.tap +
                     weight_column * column.tap;
      call.units = units + n;
      call.bias = bias == nullptr ? nullptr : bias + first;
      call.target = target + (first * pixels + p * c.columns.size() + q) * batch + n;
      call.target_step = static_cast<std::ptrdiff_t>(pixels * batch);
      tile(size, width, call);
    };
    for_each_target_and_pixel(c, targets_of_block, run);
  }
}

/// A weight gradient of one group, both operands rounded. For filter k and tap t it is the sum over rows p, columns q
/// and samples n of dy[k * dy_channel + (p * columns + q) * batch + n] times
/// x[taps[t] + p * x_row + q * x_column + n].
struct GradientShape {
  std::size_t filters = 0, rows = 0, columns = 0, batch = 0;
  std::size_t dy_channel = 0, dy_row = 0;
  std::size_t x_row = 0, x_column = 0;
  std::vector<std::size_t> taps;
};

/// Some pixels of dy.
struct PixelBlock {
  std::size_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

/// All pixels, in blocks over which a sum in double stays exact.
inline std::vector<PixelBlock> exact_blocks(const GradientShape& g) {
  const std::size_t most = static_cast<std::size_t>(kExactTerms) / g.batch;
  const std::size_t columns = std::clamp<std::size_t>(most, 1, g.columns);
  const std::size_t rows = std::max<std::size_t>(1, most / columns);
  std::vector<PixelBlock> blocks;
  for (std::size_t row = 0; row < g.rows; row += rows)
    for (std::size_t column = 0; column < g.columns; column += columns)
      blocks.push_back({row, std::min(g.rows, row + rows), column, std::min(g.columns, column + columns)});
  return blocks;
}

/// Calls tile(first filter, filters, first tap, taps, pixels) for blocks of filters, taps and pixels. The part of dy
/// that it reads stays in the first-level cache while all taps pass over it.
/// @param bytes  bytes of a number of dy
template <class Tile>
void for_each_gradient_tile(const GradientShape& g, std::size_t bytes, std::size_t most_filters,
                            std::size_t most_taps, const Tile& tile) {
  constexpr std::size_t kCachedBytes = 96 * 1024;
  for (const PixelBlock& exact : exact_blocks(g)) {
    const std::size_t row_bytes = most_filters * bytes * g.batch * (exact.last_column - exact.first_column);
    const std::size_t rows = std::max<std::size_t>(1, kCachedBytes / row_bytes);
    for_each_even_block(g.filters, most_filters, [&](std::size_t filter, std::size_t filters) {
      for (std::size_t row = exact.first_row; row < exact.last_row; row += rows) {
        PixelBlock some = exact;
        some.first_row = row;
        some.last_row = std::min(row + rows, exact.last_row);
        for_each_even_block(g.taps.size(), most_taps, [&](std::size_t tap, std::size_t taps) {
          tile(filter, filters, tap, taps, some);
        });
      }
    });
  }
}

}  // namespace lockstep::cpu::int16
