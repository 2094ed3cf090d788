// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the rule kLars is told at a step.
#pragma once

namespace lockstep {

struct LarsStep {
  float decay = 0;  ///< added to the gradient, times the weight, before the tensor's rate
  float rate = 0;
  float momentum = 0;
  float trust = 0;  ///< trust coefficient
  float eps = 0;
};

}  // namespace lockstep
