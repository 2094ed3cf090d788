// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max-, average- and global average-pooling on the CPU; contracts in kernels/ops.hpp.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>

namespace lockstep::cpu {

/// The common case has a path of its own: four taps, no overlap, no padding.
constexpr bool is_halving(const Pool2dShape& shape) {
  return shape.kernel == 2 && shape.stride == 2 && shape.padding == 0;
}

/// @throws InternalError if the kernel is larger than 16 x 16: argmax is one byte.
void max_pool_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax);
/// Where windows overlap, a pixel's gradient is added up in row-major order of the windows.
void max_pool_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax, float* dx);

/// The sum goes through a window in row-major order and is then multiplied by the rounded 1 / (kernel *
/// kernel).
void avg_pool_forward(const Pool2dShape& shape, const float* x, float* y);
void avg_pool_backward(const Pool2dShape& shape, const float* dy, float* dx);

void global_avg_pool_forward(const ImageShape& shape, int batch, const float* x, float* y);
void global_avg_pool_backward(const ImageShape& shape, int batch, const float* dy, float* dx);

}  // namespace lockstep::cpu
