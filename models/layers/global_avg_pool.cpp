// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GlobalAvgPoolLayer: the calls of its ops.
#include "models/layers/global_avg_pool.hpp"

namespace lockstep {

std::unique_ptr<Layer> GlobalAvgPoolLayer::make(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<GlobalAvgPoolLayer>(place);
}

void GlobalAvgPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.global_avg_pool_forward(input(), pass.batch, tensors.x, tensors.y);
}

void GlobalAvgPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.global_avg_pool_backward(input(), pass.batch, tensors.dy, tensors.dx);
}

void GlobalAvgPoolLayer::device_forward(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.global_avg_pool_forward(pass.stream, input(), pass.batch, tensors.x, tensors.y);
}

void GlobalAvgPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                              const DeviceLayerTensors& tensors) const {
  pass.ops.global_avg_pool_backward(pass.stream, input(), pass.batch, tensors.dy, tensors.dx);
}

}  // namespace lockstep
