// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The SGD step on the CPU; contract in kernels/ops.hpp.
#pragma once

#include "kernels/ops.hpp"

#include <cstddef>

namespace lockstep::cpu {

/// Three fused multiply-adds a parameter: d = fma(decay, w, g), m = fma(momentum, m, d), w = fma(-lr,
/// direction, w); Nesterov's direction is a fourth, fma(momentum, m, d). Pointers need no alignment.
void sgd_step(const SgdParams& params, std::size_t size, const float* g, float* m, float* w);

}  // namespace lockstep::cpu
