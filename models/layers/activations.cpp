// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that work on each element by itself: relu, the other activations, dropout.
#include "models/layers/activations.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace lockstep {

// ActivationLayer: its options, and the calls of its ops.

std::unique_ptr<Layer> ActivationLayer::make_gelu(const LayerOptions& options, const LayerPlace& place) {
  constexpr std::array<std::string_view, 2> kChoices{"none", "tanh"};
  const bool exact = options.choice("approximate", kChoices) == 0;
  return std::make_unique<ActivationLayer>(place, exact ? Activation::kGelu : Activation::kGeluTanh);
}

std::unique_ptr<Layer> ActivationLayer::make_leaky_relu(const LayerOptions& options,
                                                        const LayerPlace& place) {
  const auto slope = static_cast<float>(options.number("slope", {0, 1}, 0.01));
  return std::make_unique<ActivationLayer>(place, ActivationFunction(Activation::kLeakyRelu, slope));
}

std::unique_ptr<Layer> ActivationLayer::make_elu(const LayerOptions& options, const LayerPlace& place) {
  const auto alpha = static_cast<float>(options.number("alpha", {0, 100}, 1));
  return std::make_unique<ActivationLayer>(place, ActivationFunction(Activation::kElu, alpha));
}

std::string ActivationLayer::describe() const {
  switch (function_.kind) {
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu by tanh";
    case Activation::kLeakyRelu:
      return fmt::format("leaky_relu {}", function_.number);
    case Activation::kElu:
      return fmt::format("elu {}", function_.number);
    case Activation::kSilu:
      return "silu";
    case Activation::kHardSigmoid:
      return "hardsigmoid";
    case Activation::kHardSwish:
      return "hardswish";
    case Activation::kRelu6:
      break;
  }
  return "relu6";
}

void ActivationLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::activation_forward(function_, size_of(pass.batch, pass.channels), tensors.x, tensors.y);
}

void ActivationLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::activation_backward(function_, size_of(pass.batch, pass.channels), saved_of(tensors), tensors.dy,
                           tensors.dx);
}

void ActivationLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.activation_forward(pass.stream, function_, size_of(pass.batch), tensors.x, tensors.y);
}

void ActivationLayer::device_backward_data(const DeviceLayerPass& pass,
                                           const DeviceLayerTensors& tensors) const {
  pass.ops.activation_backward(pass.stream, function_, size_of(pass.batch), saved_of(tensors), tensors.dy,
                               tensors.dx);
}

// ReluLayer: the calls of its ops.

std::unique_ptr<Layer> ReluLayer::make(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<ReluLayer>(place);
}

void ReluLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::relu_forward(size_of(pass), tensors.x, tensors.y, pass.training ? tensors.saved : nullptr);
}

void ReluLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::relu_backward(size_of(pass), tensors.saved, tensors.dy, tensors.dx);
}

// DropoutLayer: options, shapes, and the calls of its op.

std::unique_ptr<Layer> DropoutLayer::make_elementwise(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<DropoutLayer>(place, Unit::kElement, options.probability("p", 0.5F));
}

std::unique_ptr<Layer> DropoutLayer::make_channelwise(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<DropoutLayer>(place, Unit::kChannel, options.probability("p", 0.5F));
}

std::string DropoutLayer::describe() const {
  return fmt::format("{} {}", unit_ == Unit::kChannel ? "dropout2d" : "dropout", probability_);
}

LayerOp DropoutLayer::op() const {
  return DropoutOp{probability_, drops_channels(), index()};
}

DeviceForm DropoutLayer::device_form() const {
  if (probability_ == 0) return DeviceForm::nothing();
  return DeviceForm::epilogue_step({EpilogueKind::kDropout, drops_channels(), index(), probability_});
}

void DropoutLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  DropoutShape shape = shape_of(pass.batch);
  if (!pass.training) shape.probability = 0;
  if (shape.probability == 0 && tensors.x == tensors.y) return;
  cpu::dropout(shape, key_of(pass.key), tensors.x, tensors.y);
}

void DropoutLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  if (probability_ == 0 && tensors.dx == tensors.dy) return;
  cpu::dropout(shape_of(pass.batch), key_of(pass.key), tensors.dy, tensors.dx);
}

DropoutShape DropoutLayer::shape_of(int batch) const {
  const ImageShape& image = input();
  if (unit_ == Unit::kElement) return {batch, image.features(), 1, probability_};
  return {batch, image.channels, image.height * image.width, probability_};
}

DropoutKey DropoutLayer::key_of(const PassKey& key) const {
  return {key.seed, key.step, index(), key.first_sample};
}

}  // namespace lockstep
