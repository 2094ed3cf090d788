// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two-dimensional convolution on one CPU core, by direct summation: no im2col, no copy of the images.
///
/// The contracts (shapes, sums, overwriting) are those of kernels/ops.hpp. Tensors of samples start on a
/// 64-byte line and `batch` is a multiple of kLanes; weights and their gradients may lie anywhere. Any stride
/// and padding; stride 1 is the fast path of the gradients, padding costs backward_weights one copy of x.
/// Sums are those of kernels/sum_cuts.hpp, so bits are the same for any SIMD width with fused multiply-add. Scratch memory belongs to the calling thread and
/// is kept.
#pragma once

#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"

namespace lockstep::cpu {

/// y = conv(x, w) + b.  x [C,H,W,N]  w [K,C,R,S]  b [K]  y [K,P,Q,N]
void conv2d_forward(const Conv2dShape& shape, const float* x, const float* w, const float* b, float* y);

/// dx [C,H,W,N] from dy [K,P,Q,N]; touches only the taps that lie inside dy.
void conv2d_backward_data(const Conv2dShape& shape, const float* dy, const float* w, float* dx);

/// dw [K,C,R,S] and db [K], summed over samples and pixels, in as many terms as the split says.
void conv2d_backward_weights(const Conv2dShape& shape, const GradientSplit& split, const float* x,
                             const float* dy, const GradientOutput& to);

/// Output channels of the register tiles, for this batch.
int channels_at_once(int batch);

}  // namespace lockstep::cpu
