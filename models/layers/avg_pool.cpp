// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// AvgPoolLayer: options, shapes, and the calls of its ops.
#include "models/layers/avg_pool.hpp"

#include <utility>

namespace lockstep {

AvgPoolLayer::AvgPoolLayer(LayerPlace place, const Pool2dShape& shape)
    : Layer(std::move(place), pool_output(shape)), shape_(shape) {}

std::unique_ptr<Layer> AvgPoolLayer::make(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<AvgPoolLayer>(place, read_pool_shape(options, place.input));
}

std::string AvgPoolLayer::describe() const {
  return describe_pool("avg_pool", shape_);
}

void AvgPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.avg_pool_forward(shape_of(pass), tensors.x, tensors.y);
}

void AvgPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.avg_pool_backward(shape_of(pass), tensors.dy, tensors.dx);
}

DeviceForm AvgPoolLayer::device_form() const {
  return device_form_of_pool(shape_, EpilogueKind::kAvgPool);
}

void AvgPoolLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.avg_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y);
}

void AvgPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.avg_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.dx);
}

}  // namespace lockstep
