// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Log-softmax and cross-entropy on the CPU; contracts in kernels/ops.hpp.
#pragma once

#include "kernels/ops.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace lockstep::cpu {

/// The largest logit of a sample is subtracted first, so no finite logit overflows.
void log_softmax(const LossShape& shape, const float* logits, float* y);

/// The loss of a sample is computed in float; the samples are added in double, in their order. Logits with
/// NaN or +infinity, or none but -infinity, give a NaN loss and NaN gradients for that sample, which never
/// counts as correct. Losses that are not finite are counted, not added.
void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int32_t* labels,
                           float* dlogits, LossSums* sums);

}  // namespace lockstep::cpu
