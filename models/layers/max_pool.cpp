// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MaxPoolLayer: options, shapes, and the calls of its ops.
#include "models/layers/max_pool.hpp"

#include <utility>

namespace lockstep {

MaxPoolLayer::MaxPoolLayer(LayerPlace place, const Pool2dShape& shape)
    : Layer(std::move(place), pool_output(shape)), shape_(shape) {}

std::unique_ptr<Layer> MaxPoolLayer::make(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<MaxPoolLayer>(place, read_pool_shape(options, place.input));
}

std::string MaxPoolLayer::describe() const {
  return describe_pool("max_pool", shape_);
}

void MaxPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.max_pool_forward(shape_of(pass), tensors.x, tensors.y, tensors.saved);
}

void MaxPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.max_pool_backward(shape_of(pass), tensors.dy, tensors.saved, tensors.dx);
}

DeviceForm MaxPoolLayer::device_form() const {
  return device_form_of_pool(shape_, EpilogueKind::kMaxPool);
}

void MaxPoolLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.max_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y, tensors.saved);
}

void MaxPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.max_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.saved, tensors.dx);
}

}  // namespace lockstep
