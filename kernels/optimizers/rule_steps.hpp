// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The numbers that each update rule is told at a step. They are floats, at most kStepScalars; the first is weight decay,
/// the second the rate.
#pragma once

namespace lockstep {

// Step of the rules kSgd, kSgdMomentum and kSgdNesterov.

struct SgdStep {
  float decay = 0;  ///< added to the gradient, times the weight
  float rate = 0;
  float momentum = 0;
  float share = 1;  ///< part of the gradient added to the momentum: 1 - dampening; at the first step 1
};

// Step of the rules kAdam, kAdamW, those with AMSGrad, and kLamb.

/// Everything that depends on the step's number is computed on the host, in double, and rounded once.
struct AdamStep {
  /// kAdam: added to the gradient, times the weight; kAdamW: learning rate * decay; kLamb: of the direction, likewise
  float decay = 0;
  float rate = 0;  ///< learning rate / (1 - beta1^t); kLamb: the learning rate, before the tensor's factor
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float correction1 = 0;  ///< kLamb: 1 / (1 - beta1^t)
  float correction2 = 0;  ///< 1 / sqrt(1 - beta2^t)
  float eps = 0;
};

// Step of the rules kRmsprop and kRmspropMomentum.

struct RmspropStep {
  float decay = 0;  ///< added to the gradient, times the weight
  float rate = 0;
  float alpha = 0;
  float one_minus_alpha = 0;
  float eps = 0;
  float momentum = 0;
};

// Step of the rule kLars.

struct LarsStep {
  float decay = 0;  ///< added to the gradient, times the weight, before the tensor's rate
  float rate = 0;
  float momentum = 0;
  float trust = 0;  ///< trust coefficient
  float eps = 0;
};

// Step of the rule kLion.

struct LionStep {
  float decay = 0;  ///< learning rate * decay
  float rate = 0;
  float beta1 = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
};

}  // namespace lockstep
