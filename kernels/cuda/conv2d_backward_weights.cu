// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, gradients of filters and bias, added to exact sums.
///
/// Versions:
/// 1. A warp for each weight, a lane for each sample: two loads for each fma.
/// 2. 4 taps x 4 filters in registers (conv2d_generic_weights.cuh).
/// 3. All taps of a channel for up to 5 filters in registers, under a window that slides along rows of x: 10
///    loads for 125 fmas. Warps take turns in rows and samples, and the warps of a block add up before
///    anything reaches the exact sum (conv2d_window.cuh).
///
/// Limits on an H100 (528 schedulers, 1.7 GHz, one launch each), of arithmetic / of memory:
/// Net, batch 64:     conv1  18 MFLOP, 1.7 MB  0.3 us / 0.5 us;  conv2   41 MFLOP,  0.7 MB   0.7 us / 0.2 us.
/// LeNet, batch 256:  conv1  62 MFLOP, 14.6 MB 1.1 us / 4.4 us;  conv2 1037 MFLOP,  7.6 MB  18.0 us / 2.3 us.
/// Of the inner loop's instructions (sm_90, 5 filters, 5 x 5 taps) 84 % are fmas; the start of a row of 9
/// pixels and the sums over the lanes bring it to about 70 %.
#include "kernels/cuda/conv2d_generic_weights.cuh"
#include "kernels/cuda/conv2d_window.cuh"
#include "kernels/cuda/kernels.hpp"

namespace lockstep::LOCKSTEP_GPU {

void conv2d_backward_weights(cudaStream_t stream, const Chip& chip, const Conv2dShape& s, int grain,
                             const float* x, const float* dy, const ExactGradient& gradient) {
  const OutputSize y = {s.out_channels, s.out_height(), s.out_width()};
  const WeightGradientArgs args = {s, y, grain, GradientSplit(s, grain), x, dy, gradient};
  const bool is_square = s.stride == 1 && s.kernel_height == s.kernel_width;
  if (is_square && s.kernel_height == 5) {
    launch_window<5>(stream, chip, args);
  } else if (is_square && s.kernel_height == 3) {
    launch_window<3>(stream, chip, args);
  } else {
    launch_generic_weights(stream, args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
