// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation in double, with bounds on what fp32 may make of it.
#pragma once

#include "models/layer_op.hpp"
#include "tests/models/random_networks/reference_layers.hpp"

namespace lockstep::test {

Bounded batch_norm_forward(const BatchNormOp& op, const LayerContext& context, const Bounded& x);
Bounded batch_norm_backward(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy);
/// Of weight, then bias.
Bounded batch_norm_weights(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy);

}  // namespace lockstep::test
