// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The optimiser step on the CPU; contract in kernels/ops.hpp.
#pragma once

#include "kernels/optimizers/update_rule.hpp"

#include <span>

namespace lockstep::cpu {

/// One pass over gradient, buffers and weights. Pointers need no alignment.
void update(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors, const float* g,
            float* const* buffers, float* w);

}  // namespace lockstep::cpu
