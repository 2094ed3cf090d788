// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What layers do number by number, in double, with bounds on what fp32 may make of it.
#pragma once

#include "models/layer_op.hpp"
#include "tests/models/random_networks/reference_layers.hpp"

#include <cstdint>

namespace lockstep::test {

Bounded relu_forward(const Bounded& x);
/// Counts numbers that rounding may put on the other side of zero.
Bounded relu_backward(const Bounded& x, const Bounded& dy, std::int64_t& ties);
Bounded activation_forward(Activation kind, const Bounded& x);
Bounded activation_backward(Activation kind, const Bounded& x, const Bounded& dy);
/// The same in both directions.
Bounded dropout(const DropoutOp& op, const LayerContext& context, const Bounded& x);

}  // namespace lockstep::test
