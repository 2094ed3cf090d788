// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation on the CPU; contracts in kernels/ops.hpp.
#pragma once

#include "kernels/batch_norm.hpp"

namespace lockstep::cpu {

void batch_norm_sums(const BatchNormShape& shape, const float* x, std::int64_t* sums);
void batch_norm_gradient_sums(const BatchNormShape& shape, const float* x, const float* dy,
                              const BatchNormChannel* channels, std::int64_t* sums);
void batch_norm_forward(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
                        const float* weight, const float* bias, float* y);
void batch_norm_backward(const BatchNormShape& shape, const float* x, const float* dy,
                         const BatchNormChannel* channels, const float* weight, float* dx);

}  // namespace lockstep::cpu
