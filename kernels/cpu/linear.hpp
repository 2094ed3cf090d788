// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers on one CPU core: three products of small matrices, with no copy of the weights.
///
/// The contracts are those of kernels/ops.hpp. Tensors of samples start on a 64-byte line and `batch` is a
/// multiple of kLanes; weights and their gradients may lie anywhere. Sums are those of
/// kernels/sum_cuts.hpp, whatever the SIMD width. Scratch memory belongs to the calling thread and is kept.
#pragma once

#include "kernels/shapes.hpp"

namespace lockstep::cpu {

/// y = w x + b.  x [I,N]  w [O,I]  b [O]  y [O,N]
void linear_forward(const LinearShape& shape, const float* x, const float* w, const float* b, float* y);

/// dx [I,N] from dy [O,N].
void linear_backward_data(const LinearShape& shape, const float* dy, const float* w, float* dx);

/// dw [O,I] and db [O], summed over samples.
void linear_backward_weights(const LinearShape& shape, const float* x, const float* dy, float* dw, float* db);

}  // namespace lockstep::cpu
