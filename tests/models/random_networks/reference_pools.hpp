// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pools in double, with bounds on what fp32 may make of them.
#pragma once

#include "models/layer.hpp"
#include "tests/models/random_networks/reference_layers.hpp"

#include <cstdint>

namespace lockstep::test {

Bounded max_pool_forward(const Pool2dShape& s, const Bounded& x);
/// Counts windows in which rounding may turn who wins.
Bounded max_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy, std::int64_t& ties);
Bounded avg_pool_forward(const Pool2dShape& s, const Bounded& x);
Bounded avg_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy);
Bounded global_avg_pool_forward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x);
Bounded global_avg_pool_backward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x, const Bounded& dy);

// Batch normalisation in double, with bounds on what fp32 may make of it.

Bounded batch_norm_forward(const BatchNormOp& op, const LayerContext& context, const Bounded& x);
Bounded batch_norm_backward(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy);
/// Of weight, then bias.
Bounded batch_norm_weights(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy);

}  // namespace lockstep::test
