// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// BatchNormLayer: its options, the calls of its ops, and what is made of the sums of a batch.
#include "models/layers/norms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {

BatchNormLayer::BatchNormLayer(const LayerPlace& place, const Options& options)
    : Layer(place, place.input), options_(options) {
  const int size = input().channels;
  if (options.affine) {
    add_parameter("weight", size, Parameter::Initial::kOnes);
    add_parameter("bias", size, Parameter::Initial::kZeros);
  }
  add_kept("running_mean", size, Parameter::Initial::kZeros);
  add_kept("running_var", size, Parameter::Initial::kOnes);
}

std::unique_ptr<Layer> BatchNormLayer::make(const LayerOptions& options, const LayerPlace& place) {
  constexpr double kLeastEps = 1e-12;  // far above what sums lose
  Options chosen;
  chosen.eps = options.number("eps", {kLeastEps, 1}, chosen.eps);
  chosen.momentum = options.number("momentum", {0, 1}, chosen.momentum);
  chosen.affine = options.yes_or_no("affine", chosen.affine);
  return std::make_unique<BatchNormLayer>(place, chosen);
}

LayerOp BatchNormLayer::op() const {
  return BatchNormOp{.input = input(), .eps = options_.eps, .affine = options_.affine};
}

void BatchNormLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  std::vector<BatchNormChannel> running;
  const BatchNormChannel* of_batch = channels_in(tensors.statistics);
  if (!pass.training) {
    running.resize(channels());
    for (std::size_t c = 0; c < channels(); ++c)
      set_running_statistics(tensors.kept[c], tensors.kept[channels() + c], options_.eps, running[c]);
    of_batch = running.data();
  }
  cpu::batch_norm_forward(shape_of(pass), tensors.x, of_batch, weight_of(tensors.weights),
                          bias_of(tensors.weights), tensors.y);
}

/// The sums are of the whole global batch, so its first grain brings them and no other brings anything.
void BatchNormLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  if (!options_.affine) return;
  const BatchNormChannel* of_batch = channels_in(tensors.statistics);
  const bool brings_them = pass.key.first_sample == 0;
  for (std::size_t c = 0; c < channels(); ++c) {
    tensors.gradients[c] = brings_them ? of_batch[c].dweight : 0;
    tensors.gradients[channels() + c] = brings_them ? of_batch[c].dbias : 0;
  }
}

void BatchNormLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::batch_norm_backward(shape_of(pass), tensors.x, tensors.dy, channels_in(tensors.statistics),
                           weight_of(tensors.weights), tensors.dx);
}

std::size_t BatchNormLayer::words() const {
  return channels() * kBatchNormWords;
}

std::size_t BatchNormLayer::statistics_bytes() const {
  return channels() * sizeof(BatchNormChannel);
}

void BatchNormLayer::add_forward_sums(const LayerPass& pass, const LayerTensors& tensors,
                                      std::int64_t* words) const {
  cpu::batch_norm_sums(shape_of(pass), tensors.x, words);
}

void BatchNormLayer::add_backward_sums(const LayerPass& pass, const LayerTensors& tensors,
                                       std::int64_t* words) const {
  cpu::batch_norm_gradient_sums(shape_of(pass), tensors.x, tensors.dy, channels_in(tensors.statistics),
                                words);
}

void BatchNormLayer::finish_forward_sums(const std::int64_t* words, std::int64_t samples,
                                         std::byte* statistics) const {
  for (std::size_t c = 0; c < channels(); ++c)
    set_batch_statistics(words + c * kBatchNormWords, samples * pixels(), options_.eps,
                         channels_in(statistics)[c]);
}

void BatchNormLayer::finish_backward_sums(const std::int64_t* words, std::int64_t samples,
                                          std::byte* statistics) const {
  for (std::size_t c = 0; c < channels(); ++c)
    set_batch_gradients(words + c * kBatchNormWords, samples * pixels(), channels_in(statistics)[c]);
}

void BatchNormLayer::move_kept(const std::byte* statistics, float* kept) const {
  const auto momentum = static_cast<float>(options_.momentum);
  for (std::size_t c = 0; c < channels(); ++c)
    move_running_statistics(channels_in(statistics)[c], momentum, kept[c], kept[channels() + c]);
}

// BatchNormLayer on a device: the calls of its ops.

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

// GroupNormLayer: its options, and the calls of its ops.

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
