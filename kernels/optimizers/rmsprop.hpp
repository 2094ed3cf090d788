// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the rules kRmsprop and kRmspropMomentum are told at a step.
#pragma once

namespace lockstep {

struct RmspropStep {
  float decay = 0;  ///< added to the gradient, times the weight
  float rate = 0;
  float alpha = 0;
  float one_minus_alpha = 0;
  float eps = 0;
  float momentum = 0;
};

}  // namespace lockstep
