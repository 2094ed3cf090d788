// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations, sums and dropout on the CPU; contracts in kernels/ops.hpp.
#pragma once

#include "kernels/numerics/random.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

/// Negative numbers become 0; -0, NaN and everything else stay as they are.
/// @param positive  [sign_bytes(size)]; may be null
void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive);
void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx);

void activation_forward(Activation kind, std::size_t size, const float* x, float* y);
void activation_backward(Activation kind, std::size_t size, const float* saved, const float* dy, float* dx);
void add(std::size_t size, const float* a, const float* b, float* y);

/// Draws the same numbers as philox() of kernels/numerics/random.hpp, for several samples at a time.
void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y);

}  // namespace lockstep::cpu
