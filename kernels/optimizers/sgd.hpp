// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the rules kSgd, kSgdMomentum and kSgdNesterov are told at a step.
#pragma once

namespace lockstep {

struct SgdStep {
  float decay = 0;  ///< added to the gradient, times the weight
  float rate = 0;
  float momentum = 0;
};

}  // namespace lockstep
