// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// LinearLayer: options, shapes, and the calls of its ops.
#include "models/layers/linear.hpp"

#include "common/checked_size.hpp"
#include "models/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

LinearLayer::LinearLayer(const LayerPlace& place, int outputs, bool has_bias)
    : WeightedLayer(place, {outputs, 1, 1}, {outputs, place.input.features()}, has_bias) {}

std::unique_ptr<Layer> LinearLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const int outputs = options.outputs();
  options.require_weights(checked_product(outputs, place.input.features()));
  return std::make_unique<LinearLayer>(place, outputs, options.yes_or_no("bias", true));
}

std::string LinearLayer::describe() const {
  return fmt::format("linear {} -> {}{}", input().features(), output().channels, bias_in_words());
}

/// Its input, transposed, or a slice of its output.
std::uint64_t LinearLayer::scratch_numbers(int columns) const {
  return checked_sum(checked_product(std::max(input().features() + 16, output().features()), columns),
                     stand_in_numbers(1));
}

void LinearLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.linear_forward(shape_of(pass.batch), tensors.x, tensors.weights, bias(tensors), tensors.y);
}

void LinearLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.linear_backward_weights(shape_of(pass.batch), tensors.x, tensors.dy, tensors.gradients,
                                   bias_gradient(tensors, 1));
}

void LinearLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.linear_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, tensors.dx);
}

DeviceForm LinearLayer::device_form() const {
  return {.takes_epilogue = true, .stores_through = DeviceForm::StoresThrough::kAnyShape};
}

void LinearLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.linear_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights, device_bias(tensors),
                          *tensors.epilogue, tensors.state, tensors.y, tensors.mask);
}

void LinearLayer::device_backward_weights(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.linear_backward_weights(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x, tensors.dy,
                                   device_gradient(tensors));
}

void LinearLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.linear_backward_data(pass.stream, shape_of(pass.batch), tensors.dy, tensors.weights,
                                tensors.through, tensors.dx);
}

}  // namespace lockstep
