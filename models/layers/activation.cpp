// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ActivationLayer: the calls of its ops.
#include "models/layers/activation.hpp"

namespace lockstep {

std::unique_ptr<Layer> ActivationLayer::make_tanh(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<ActivationLayer>(place, Activation::kTanh);
}

std::unique_ptr<Layer> ActivationLayer::make_sigmoid(const LayerOptions& /*options*/,
                                                     const LayerPlace& place) {
  return std::make_unique<ActivationLayer>(place, Activation::kSigmoid);
}

std::string ActivationLayer::describe() const {
  return kind_ == Activation::kTanh ? "tanh" : "sigmoid";
}

void ActivationLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.activation_forward(kind_, size_of(pass.batch), tensors.x, tensors.y);
}

void ActivationLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.activation_backward(kind_, size_of(pass.batch), tensors.y, tensors.dy, tensors.dx);
}

void ActivationLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.activation_forward(pass.stream, kind_, size_of(pass.batch), tensors.x, tensors.y);
}

void ActivationLayer::device_backward_data(const DeviceLayerPass& pass,
                                           const DeviceLayerTensors& tensors) const {
  pass.ops.activation_backward(pass.stream, kind_, size_of(pass.batch), tensors.y, tensors.dy, tensors.dx);
}

}  // namespace lockstep
