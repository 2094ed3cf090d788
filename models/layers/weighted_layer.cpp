// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WeightedLayer: its tensors, and what stands in for a bias.
#include "models/layers/weighted_layer.hpp"

#include <functional>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

/// Of the calling thread; they only grow.
thread_local std::vector<float> zero_bias, unread_gradient;

float* at_least(std::vector<float>& numbers, std::size_t size) {
  if (numbers.size() < size) numbers.resize(size);
  return numbers.data();
}

}  // namespace

WeightedLayer::WeightedLayer(LayerPlace place, const ImageShape& output, const std::vector<int>& weight_shape,
                             bool has_bias)
    : Layer(std::move(place), output),
      outputs_(static_cast<std::size_t>(weight_shape.front())),
      has_bias_(has_bias) {
  const int fan_in = std::accumulate(weight_shape.begin() + 1, weight_shape.end(), 1, std::multiplies<>());
  add_weight(weight_shape, fan_in);
  if (has_bias) add_bias(weight_shape.front(), fan_in);
}

const float* WeightedLayer::bias(const LayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : at_least(zero_bias, outputs_);
}

float* WeightedLayer::bias_gradient(const LayerTensors& tensors, int terms) const {
  if (has_bias_) return tensors.gradients + weight_size();
  return at_least(unread_gradient, outputs_ + tensors.term_stride * static_cast<std::size_t>(terms - 1));
}

const float* WeightedLayer::device_bias(const DeviceLayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : tensors.zero_bias;
}

ExactGradient WeightedLayer::device_gradient(const DeviceLayerTensors& tensors) const {
  return {tensors.gradients[0], has_bias_ ? tensors.gradients[1] : tensors.unread_gradient};
}

}  // namespace lockstep
