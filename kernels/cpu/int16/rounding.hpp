// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From fp32 tensors to rounded operands in the layouts of the engines.
#pragma once

#include "kernels/cpu/int16/column_maxima.hpp"
#include "kernels/cpu/int16/operands.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lockstep::cpu::int16 {

/// Each column's unit.   @param x  [features, batch]     @param samples  columns after them have the unit of nothing
void find_units(std::size_t features, std::size_t batch, std::size_t samples, const Operand& x,
                ColumnUnits& units);
/// One unit of all columns but those after the samples.   @returns its value; 0: there are no samples
double find_common_unit(std::size_t features, std::size_t batch, std::size_t samples, const Operand& x,
                        ColumnUnits& units);
/// The unit of a tensor without columns.
Unit find_unit(std::size_t size, const float* numbers);

/// q [block][features][column of the block]   @param together  columns of a block; the last may have fewer
void round_columns(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units,
                   float* q, std::size_t together = ~std::size_t{0});
/// q [features, batch]
void round_columns(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units,
                   std::int16_t* q);
/// The sum of q.
std::int64_t sum_rounded(std::size_t features, std::size_t batch, const float* x, const ColumnUnits& units);
/// Rounds numbers of one unit.
void round_all(std::size_t size, const float* numbers, const Unit& unit, float* q);
void round_all(std::size_t size, const float* numbers, const Unit& unit, std::int16_t* q);

/// round_once() of all.   @param terms  products in each total
void round_totals(std::size_t size, std::size_t terms, const std::int64_t* totals, double unit,
                  float* results);

/// Channels of images in a frame of zeros.
struct FramedImage {
  std::size_t channels = 0, height = 0, width = 0, frame = 0, batch = 0;

  std::size_t row() const { return (width + 2 * frame) * batch; }
  std::size_t channel() const { return (height + 2 * frame) * row(); }
};
/// q [channels][height + 2 frame][width + 2 frame][batch]
template <class Number>
void round_image(const FramedImage& image, const float* x, const ColumnUnits& units, Number* q) {
  const std::size_t pixels = image.width * image.batch, side = image.frame * image.batch;
  for (std::size_t c = 0; c < image.channels; ++c) {
    q = std::fill_n(q, image.frame * image.row(), Number{0});
    for (std::size_t h = 0; h < image.height; ++h, x += pixels) {
      q = std::fill_n(q, side, Number{0});
      round_columns(image.width, image.batch, x, units, q);
      q = std::fill_n(q + pixels, side, Number{0});
    }
    q = std::fill_n(q, image.frame * image.row(), Number{0});
  }
}

}  // namespace lockstep::cpu::int16
