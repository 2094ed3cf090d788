// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arguments of the ops that move weights on a device: the update with its clip and norm, and averages.
#pragma once

#include "kernels/device_fingerprints.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/step_state.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Ranges of the arena that the update treats differently, in device memory. None: all parameters are alike, as the
/// step says; not for rules that look at norms.
struct UpdateTensors {
  int count = 0;
  const UpdateTensor* ranges = nullptr;    ///< [count]
  const std::int32_t* range_of = nullptr;  ///< [parameters]
  TensorFactors* factors = nullptr;        ///< [count], scratch of the update if the rule looks at norms
};

/// How the mean gradient is clipped before the rule sees it. Memory is the device's.
struct UpdateClip {
  float limit = HUGE_VALF;        ///< limit of each element
  const float* factor = nullptr;  ///< null: 1
};

/// Destination of the norm of the mean gradient, and of the factor that follows from it; all in device memory.
struct GradientNorm {
  const UpdateTensor* tensors = nullptr;  ///< [count], in the order of the network
  int count = 0;
  double* squares = nullptr;  ///< [count], overwritten: the sum of the squares of each
  double most = 0;            ///< the norm that is allowed
  float* factor = nullptr;    ///< overwritten: clip_factor() of the norm of these tensors
};

/// Everything that moves the weights once the sums are complete.
struct UpdateArgs {
  std::size_t parameters = 0;
  std::int64_t* sums = nullptr;      ///< [kCounterSlots + parameters]; zeroed when done
  const float* fp32_sums = nullptr;  ///< [parameters]; null: use `sums`. (determinism: off)
  /// [parameters]: the unit of each sum is 2^exponent; null: kExactExponent for all of them.
  const std::int16_t* exponents = nullptr;
  float* weights = nullptr;  ///< [parameters], in place
  UpdateRule rule = UpdateRule::kSgd;
  float* buffers[kMostBuffers] = {};  ///< buffers of the rule, each [parameters], in place
  UpdateTensors tensors;
  UpdateClip clip = {};
  StepFingerprints fingerprints = {};  ///< not with fp32_sums
  StepState* state = nullptr;          ///< its scalars are what the rule is told
};

/// Arguments of average(), which are those of cpu::average.
struct AverageArgs {
  std::size_t parameters = 0;
  const float* weights = nullptr;  ///< [parameters], in device memory
  float* average = nullptr;        ///< [parameters], likewise, in place
  float share = 0;
  /// Given where the step's update was queued before. Nothing moves if that halted, and after the first step the share
  /// is 1. Null: the average moves as the other arguments say.
  const StepState* state = nullptr;
};

}  // namespace lockstep
