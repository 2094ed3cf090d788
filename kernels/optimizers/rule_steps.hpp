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
  float decay;
  float rate;  ///< learning rate / (1 - beta1^t); kLamb: the learning rate, before the tensor's factor
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float correction1 = 0;  ///< kLamb: 1 / (1 - beta1^t)
  float correction2;      ///< 1 / sqrt(1 - beta2^t)
  float eps;
};

// Step of the rules kRmsprop and kRmspropMomentum.

struct RmspropStep {
  float decay;  ///< added to the gradient, times the weight
  float rate;
  float alpha;
  float one_minus_alpha;
  float eps;
  float momentum;
};

// Step of the rule kLars.

struct LarsStep {
  float decay;  ///< added to the gradient, times the weight, before the tensor's rate
  float rate;
  float momentum;
  float trust;  ///< trust coefficient
  float eps;
};

// Step of the rule kLion.

struct LionStep {
  float decay;  ///< learning rate * decay
  float rate;
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
};

}  // namespace lockstep
