// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every layer by naive loops in double, with bounds on what fp32 may make of it. Tensors are
/// [channel][row][column][sample] without padding columns.
#pragma once

#include "kernels/numerics/random.hpp"
#include "models/layer_op.hpp"
#include "tests/models/random_networks/bounded.hpp"

#include <cstdint>
#include <span>

namespace lockstep::test {

/// What a layer reads in both directions. Shapes of ops have the true batch.
struct LayerContext {
  std::span<const float> weights;  ///< of the layer alone: weight, then bias if it has one
  std::span<const float> kept;     ///< running mean, then variance
  int batch = 0;
  bool training = false;
  DropoutKey dropout;  ///< without the layer
  int features = 1;    ///< of the input of a sample
  int channels = 1;    ///< likewise
};

/// y of x, and of the branch for layers that have one.
Bounded layer_forward(const LayerOp& op, const LayerContext& context, const Bounded& x,
                      const Bounded* branch);
/// The gradient of x from that of y (the branch's is that of y itself); counts decisions that rounding
/// may turn.
Bounded layer_backward(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy,
                       std::int64_t& ties);
/// a + b, rounded.
Bounded sum(const Bounded& a, const Bounded& b);
/// The gradient of weight and bias, summed over samples; empty for layers without.
Bounded weight_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy);

}  // namespace lockstep::test
