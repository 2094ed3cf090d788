// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the rules kAdam and kAdamW are told at a step.
#pragma once

namespace lockstep {

/// Everything that depends on the step's number is computed on the host, in double, and rounded once.
struct AdamStep {
  float decay = 0;  ///< kAdam: added to the gradient, times the weight; kAdamW: rate * decay
  float rate = 0;   ///< learning rate / (1 - beta1^t)
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float correction2 = 0;  ///< 1 / sqrt(1 - beta2^t)
  float eps = 0;
};

}  // namespace lockstep
