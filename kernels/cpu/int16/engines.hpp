// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An engine of 16-bit integers: two products of integers, with its rounding and layout.
#pragma once

#include "common/buffers.hpp"
#include "kernels/cpu/int16/rounding.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::cpu::int16 {

/// One group of a forward pass or of a data gradient; at most kExactTerms taps in all.
struct GroupProduct {
  const Correlation& shape;
  const float* source = nullptr;  ///< [source][row][column][sample]
  const ColumnUnits& of_source;
  const float* weights = nullptr;
  const Unit& of_weights;
  const double* units = nullptr;  ///< [columns], of source and weights together; NaN gives NaN
  const float* bias = nullptr;    ///< [targets]; null: zeros
  float* target = nullptr;

  std::size_t pixels() const { return std::size_t{1} * shape.source_rows * shape.source_columns; }
  std::size_t batch() const { return shape.batch; }
  std::size_t sources() const { return shape.sources; }
  std::size_t filters() const { return shape.targets * shape.filter(); }
};

/// The weight gradient of one group.
struct GroupGradient {
  const GradientShape& shape;
  FramedImage image;         ///< x, as an engine frames it; shape.taps are places in it
  const float* x = nullptr;  ///< [channels][height][width][sample]
  const ColumnUnits& of_x;
  const float* dy = nullptr;  ///< [filter][dy_channel]
  const ColumnUnits& of_dy;
  std::int64_t* totals = nullptr;  ///< [filter][tap], overwritten
};

/// Functions that only run where is_here() says so.
struct Engine {
  std::string_view name;
  bool (*is_here)();
  void (*correlate)(const GroupProduct& product);
  void (*sum_gradients)(const GroupGradient& gradient);
  double fma_peaks = 1;  ///< the most products a second, in those of fp32 multiply-adds on the same core
};

/// Intel AMX (kernels/cpu/int16/amx.cpp).
extern const Engine kAmx;
/// AVX-512 VNNI (kernels/cpu/int16/vnni.cpp).
extern const Engine kVnni;
/// Every processor (kernels/cpu/int16/doubles.cpp).
extern const Engine kDoubles;

/// From now on the ops use this one, which need not be of this processor's: for tests.
void use_engine(const Engine& engine);

/// Purposes of scratch memory of the engines. Each has separate memory for each type of number.
enum class ScratchUse { kSource, kLowSource, kWeights, kRounded, kGradient, kSums, kTileSums };

/// Memory that a thread keeps for one purpose.
template <class Number, ScratchUse use>
Number* scratch(std::size_t size) {
  static thread_local AlignedBuffer<Number> buffer;
  if (buffer.size() < size) buffer = AlignedBuffer<Number>(size);
  return buffer.data();
}

}  // namespace lockstep::cpu::int16
