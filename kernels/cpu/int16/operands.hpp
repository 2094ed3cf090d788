// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The common part of the engines of 16-bit integers: units, sums, and the order of a call's tiles.
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
inline constexpr std::size_t kExactTerms = std::size_t{1} << 22;

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

/// Calls run(first target, targets, row, column) for all blocks of targets and all pixels. All weights pass over a
/// pixel's window if the second-level cache holds them; else windows pass over some weights.
template <class Run>
void for_each_target_and_pixel(const Correlation& c, std::size_t targets_of_block, const Run& run) {
  constexpr std::size_t kCachedWeights = 96 * 1024;
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  for_each_block(c.targets, targets_of_block,
                 [&](std::size_t first, std::size_t size) { blocks.emplace_back(first, size); });
  const auto for_each_pixel = [&](const auto& use) {
    for (std::size_t row = 0; row < c.rows.size(); ++row)
      for (std::size_t column = 0; column < c.columns.size(); ++column) use(row, column);
  };
  if (c.targets * c.filter() <= kCachedWeights) {
    for_each_pixel([&](std::size_t row, std::size_t column) {
      for (const auto& block : blocks) run(block.first, block.second, row, column);
    });
  } else {
    for (const auto& block : blocks)
      for_each_pixel(
          [&](std::size_t row, std::size_t column) { run(block.first, block.second, row, column); });
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

}  // namespace lockstep::cpu::int16
