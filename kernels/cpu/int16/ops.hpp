// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions and fully connected layers in 16-bit integers (train.precision: int16). Tensors, gradients and
/// conventions are those of kernels/cpu/ops.hpp; docs/arithmetic.md has the contract:
/// - An operand v becomes q = v / 2^e, rounded half to even, where e >= -149 is the smallest with |v| <= 32639 2^e for
///   all v of its unit. For x and dy each sample has a unit, but in a weight gradient the whole call has one;
///   weights have one a tensor. Padding samples count nowhere.
/// - A result is the exact sum of products of integers, times a power of two, rounded once to fp32; then the bias.
/// - NaN or infinity in a unit makes all its results NaN.
/// Units come from the largest number of each column, which an Operand may bring.
/// So the order of a sum leaves no trace, nor does the engine.
#pragma once

#include "kernels/cpu/int16/column_maxima.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cpu::int16 {

/// cpu::conv2d_forward in integers; b null: zeros.   @param samples  columns that are samples; the others are padding
void conv2d_forward(const Conv2dShape& shape, int samples, const Operand& x, const float* w, const float* b,
                    float* y);
/// cpu::conv2d_backward_data in integers.
void conv2d_backward_data(const Conv2dShape& shape, int samples, const Operand& dy, const float* w,
                          const float* b, float* dx);
/// dw [K,C,R,S], in one term: a sum of integers needs no others.
void conv2d_backward_weights(const Conv2dShape& shape, int samples, const Operand& x, const Operand& dy,
                             float* dw);
/// db [channels] of dy [channels,pixels,N], with the unit of the call.
void bias_gradient(int channels, int pixels, int batch, int samples, const Operand& dy, float* db);
/// A fully connected layer is a convolution of images of one pixel.
Conv2dShape as_convolution(const LinearShape& shape);

// How much of a gradient is rounded away.

/// Numbers of gradients of outputs that are not 0. Some of them become 0 in the unit of a weight gradient.
struct RoundingCount {
  std::int64_t nonzero = 0, to_zero = 0;
};
/// From now until take_count() this thread counts what count_rounding() is given.
void begin_count();
RoundingCount take_count();
/// dy [features,N] of a weight gradient. Costs nothing where nothing is counted.
void count_rounding(std::size_t features, int batch, int samples, const float* dy);

/// Numbers of scratch memory that a thread keeps for these ops on a layer, at most.
std::uint64_t scratch_numbers(const Conv2dShape& shape, int columns);

// Engines compute the same bits.

/// The variable that names one for a command.
inline constexpr const char* kEngineVariable = "LOCKSTEP_INTEGER_ENGINE";

/// The engines of this processor, with the instruction set in use, the best one first. "amx" has 8-bit digits on
/// tiles, "vnni" AVX-512 VNNI, 16-bit numbers and their high digits; "doubles" runs on every processor.
std::vector<std::string> engine_choices();
/// The one in use.
std::string engine_name();
/// The most products a second that it can do, in those of fp32 multiply-adds on the same core.
double engine_peak();
/// From now on. Call before any of these ops runs, at most once; an empty name changes nothing.
/// @throws UsageError  there is no such engine; DeviceError  this processor does not have it
void choose_engine(std::string_view name);

}  // namespace lockstep::cpu::int16
