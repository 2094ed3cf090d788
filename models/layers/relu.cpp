// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ReluLayer: the calls of its ops.
#include "models/layers/relu.hpp"

namespace lockstep {

std::unique_ptr<Layer> ReluLayer::make(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<ReluLayer>(place);
}

void ReluLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.relu_forward(size_of(pass), tensors.x, tensors.y, pass.training ? tensors.saved : nullptr);
}

void ReluLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.relu_backward(size_of(pass), tensors.saved, tensors.dy, tensors.dx);
}

}  // namespace lockstep
