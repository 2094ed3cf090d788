// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// BatchNormLayer on a device: the calls of its ops.
#include "models/layers/batch_norm.hpp"

namespace lockstep {

void BatchNormLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.batch_norm_forward(pass.stream, shape_of(pass), tensors.x, channels_in(tensors.statistics),
                              weight_of(tensors.weights), bias_of(tensors.weights), tensors.y);
}

/// As on a CPU, the rank with the first sample of the global batch brings the sums.
void BatchNormLayer::device_backward_weights(const DeviceLayerPass& pass,
                                             const DeviceLayerTensors& tensors) const {
  if (!pass.has_first_sample) return;
  pass.ops.batch_norm_weight_gradients(pass.stream, input().channels, channels_in(tensors.statistics),
                                       {tensors.gradients[0], tensors.gradients[1]});
}

void BatchNormLayer::device_backward_data(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.batch_norm_backward(pass.stream, shape_of(pass), tensors.x, tensors.dy,
                               channels_in(tensors.statistics), weight_of(tensors.weights), tensors.dx);
}

void BatchNormLayer::device_forward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                                         std::int64_t* words) const {
  pass.ops.batch_norm_sums(pass.stream, shape_of(pass), pass.grain, tensors.x, words);
}

void BatchNormLayer::device_backward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                                          std::int64_t* words) const {
  pass.ops.batch_norm_gradient_sums(pass.stream, shape_of(pass), pass.grain, tensors.x, tensors.dy,
                                    channels_in(tensors.statistics), words);
}

void BatchNormLayer::finish_device_forward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                                std::int64_t samples, std::byte* statistics) const {
  pass.ops.batch_norm_statistics(pass.stream, input().channels, samples * pixels(), options_.eps, words,
                                 channels_in(statistics));
}

void BatchNormLayer::finish_device_backward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                                 std::int64_t samples, std::byte* statistics) const {
  pass.ops.batch_norm_gradients(pass.stream, input().channels, samples * pixels(), words,
                                channels_in(statistics));
}

void BatchNormLayer::device_use_kept(const DeviceLayerPass& pass, const float* kept,
                                     std::byte* statistics) const {
  pass.ops.batch_norm_running(pass.stream, input().channels, options_.eps, kept, channels_in(statistics));
}

void BatchNormLayer::device_move_kept(const DeviceLayerPass& pass, const std::byte* statistics,
                                      const StepState* state, float* kept) const {
  pass.ops.batch_norm_move(pass.stream, input().channels, static_cast<float>(options_.momentum),
                           channels_in(statistics), state, kept);
}

}  // namespace lockstep
