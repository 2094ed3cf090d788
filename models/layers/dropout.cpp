// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DropoutLayer: options, shapes, and the calls of its op.
#include "models/layers/dropout.hpp"

#include <fmt/format.h>

namespace lockstep {

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
  pass.ops.dropout(shape, key_of(pass.key), tensors.x, tensors.y);
}

void DropoutLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  if (probability_ == 0 && tensors.dx == tensors.dy) return;
  pass.ops.dropout(shape_of(pass.batch), key_of(pass.key), tensors.dy, tensors.dx);
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
