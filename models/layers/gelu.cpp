// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GeluLayer: its option, and the calls of its ops.
#include "models/layers/gelu.hpp"

#include <array>
#include <string_view>

namespace lockstep {

std::unique_ptr<Layer> GeluLayer::make(const LayerOptions& options, const LayerPlace& place) {
  constexpr std::array<std::string_view, 2> kChoices{"none", "tanh"};
  const bool exact = options.choice("approximate", kChoices) == 0;
  return std::make_unique<GeluLayer>(place, exact ? Activation::kGelu : Activation::kGeluTanh);
}

void GeluLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.activation_forward(kind_, size_of(pass.batch), tensors.x, tensors.y);
}

void GeluLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.activation_backward(kind_, size_of(pass.batch), tensors.x, tensors.dy, tensors.dx);
}

void GeluLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.activation_forward(pass.stream, kind_, size_of(pass.batch), tensors.x, tensors.y);
}

void GeluLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.activation_backward(pass.stream, kind_, size_of(pass.batch), tensors.x, tensors.dy, tensors.dx);
}

}  // namespace lockstep
