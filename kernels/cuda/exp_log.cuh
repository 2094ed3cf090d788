// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of kernels/numerics/exp_log.inc for one number of a thread.
#pragma once

#include "kernels/cuda/activation_math.cuh"

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

#define LOCKSTEP_LANES __device__ inline
#include "kernels/numerics/exp_log.inc"
#undef LOCKSTEP_LANES

/// e^x for x <= 0, within 2 units in the last place; NaN for NaN. No branch, so that several run side by side.
__device__ inline float exp_nonpositive(float x) {
  return exp_of_loss<ScalarMath>(x);
}

/// ln x for finite x >= 1, within 2 units in the last place; NaN for NaN.
__device__ inline float log_from_one(float x) {
  return log_of_loss<ScalarMath>(x);
}

}  // namespace lockstep::LOCKSTEP_GPU
