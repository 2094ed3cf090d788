// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GroupNormLayer: its options, and the calls of its ops.
#include "models/layers/group_norm.hpp"

#include <fmt/format.h>

#include <vector>

namespace lockstep {

namespace {

/// eps and affine of both kinds.
GroupNormOp read_norm(const LayerOptions& options) {
  constexpr double kLeastEps = 1e-12;  // far above what sums lose
  GroupNormOp chosen;
  chosen.eps = options.number("eps", {kLeastEps, 1}, 1e-5);
  chosen.affine = options.yes_or_no("affine", true);
  return chosen;
}

/// A vector is [channels], as in PyTorch.
std::vector<int> all_dimensions(const ImageShape& shape) {
  if (shape.height == 1 && shape.width == 1) return {shape.channels};
  return {shape.channels, shape.height, shape.width};
}

/// The memory between the passes as numbers.
float* statistics_in(std::uint8_t* saved) {
  return reinterpret_cast<float*>(saved);
}

}  // namespace

GroupNormLayer::GroupNormLayer(const LayerPlace& place, const GroupNormOp& options)
    : Layer(place, place.input), options_(options) {
  if (!options.affine) return;
  const std::vector<int> shape =
      options.whole_layer ? all_dimensions(input()) : std::vector{input().channels};
  add_parameter("weight", shape, Parameter::Initial::kOnes);
  add_parameter("bias", shape, Parameter::Initial::kZeros);
}

std::unique_ptr<Layer> GroupNormLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const ImageShape& input = place.input;
  GroupNormOp chosen = read_norm(options);
  const int groups = options.integer("groups", 1, kMaxOutputs);
  if (input.channels % groups != 0) {
    options.fail_shape(fmt::format("{} groups do not divide {} channels; write groups: 1, or another divisor",
                                   groups, input.channels));
  }
  chosen.shape = {1, groups, input.channels, input.height * input.width};
  return std::make_unique<GroupNormLayer>(place, chosen);
}

std::unique_ptr<Layer> GroupNormLayer::make_layer_norm(const LayerOptions& options, const LayerPlace& place) {
  GroupNormOp chosen = read_norm(options);
  chosen.shape = {1, 1, place.input.features(), 1};
  chosen.whole_layer = true;
  return std::make_unique<GroupNormLayer>(place, chosen);
}

std::string GroupNormLayer::describe() const {
  return options_.whole_layer ? "layer_norm" : fmt::format("group_norm {}", options_.shape.groups);
}

GroupNormShape GroupNormLayer::shape_of(int batch) const {
  GroupNormShape shape = options_.shape;
  shape.batch = batch;
  return shape;
}

void GroupNormLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::group_norm_forward(shape_of(pass.batch), options_.eps, tensors.x, weight_of(tensors.weights),
                          bias_of(tensors.weights), statistics_in(tensors.saved), tensors.y);
}

void GroupNormLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  if (!options_.affine) return;
  cpu::group_norm_weight_gradients(shape_of(pass.batch), tensors.x, tensors.dy, statistics_in(tensors.saved),
                                   tensors.gradients, tensors.gradients + options_.shape.channels);
}

void GroupNormLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::group_norm_backward(shape_of(pass.batch), tensors.x, tensors.dy, weight_of(tensors.weights),
                           statistics_in(tensors.saved), tensors.dx);
}

// On a device: the same.

void GroupNormLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.group_norm_forward(pass.stream, shape_of(pass.batch), options_.eps, tensors.x,
                              weight_of(tensors.weights), bias_of(tensors.weights),
                              statistics_in(tensors.saved), tensors.y);
}

void GroupNormLayer::device_backward_weights(const DeviceLayerPass& pass,
                                             const DeviceLayerTensors& tensors) const {
  pass.ops.group_norm_weight_gradients(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x,
                                       tensors.dy, statistics_in(tensors.saved),
                                       {tensors.gradients[0], tensors.gradients[1]});
}

void GroupNormLayer::device_backward_data(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.group_norm_backward(pass.stream, shape_of(pass.batch), tensors.x, tensors.dy,
                               weight_of(tensors.weights), statistics_in(tensors.saved), tensors.dx);
}

}  // namespace lockstep
