// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers that normalise: batch_norm, layer_norm and group_norm.
#pragma once

#include "kernels/batch_norm.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <string>

namespace lockstep {

/// `batch_norm: {eps: 1e-5, momentum: 0.1, affine: true}`.
/// y = (x - mean) / sqrt(variance + eps) * weight + bias, channel by channel, with mean and variance of the
/// global batch in training and the running ones in evaluation. NAME.weight and NAME.bias [channels] are
/// trained, unless `affine: false`; NAME.running_mean and NAME.running_var [channels] are kept.
class BatchNormLayer final : public Layer, public BatchLayer {
 public:
  struct Options {
    double eps = 1e-5;
    double momentum = 0.1;
    bool affine = true;
  };

  BatchNormLayer(const LayerPlace& place, const Options& options);
  /// @throws ConfigError  if an option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "batch_norm"; }
  LayerOp op() const override;
  bool needs_input() const override { return true; }
  const BatchLayer* over_batch() const override { return this; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

  std::size_t words() const override;
  std::size_t statistics_bytes() const override;
  std::int64_t least_samples() const override { return pixels() > 1 ? 1 : 2; }
  void add_forward_sums(const LayerPass& pass, const LayerTensors& tensors,
                        std::int64_t* words) const override;
  void add_backward_sums(const LayerPass& pass, const LayerTensors& tensors,
                         std::int64_t* words) const override;
  void finish_forward_sums(const std::int64_t* words, std::int64_t samples,
                           std::byte* statistics) const override;
  void finish_backward_sums(const std::int64_t* words, std::int64_t samples,
                            std::byte* statistics) const override;
  void move_kept(const std::byte* statistics, float* kept) const override;
  void device_forward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                           std::int64_t* words) const override;
  void device_backward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                            std::int64_t* words) const override;
  void finish_device_forward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                  std::int64_t samples, std::byte* statistics) const override;
  void finish_device_backward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                   std::int64_t samples, std::byte* statistics) const override;
  void device_use_kept(const DeviceLayerPass& pass, const float* kept, std::byte* statistics) const override;
  void device_move_kept(const DeviceLayerPass& pass, const std::byte* statistics, const StepState* state,
                        float* kept) const override;

 private:
  std::size_t channels() const { return static_cast<std::size_t>(input().channels); }
  int pixels() const { return input().height * input().width; }
  BatchNormShape shape_of(const LayerPass& pass) const {
    return {pass.batch, pass.samples, input().channels, pixels()};
  }
  BatchNormShape shape_of(const DeviceLayerPass& pass) const {
    return {pass.batch, pass.batch, input().channels, pixels()};
  }
  const float* weight_of(const float* weights) const { return options_.affine ? weights : nullptr; }
  const float* bias_of(const float* weights) const {
    return options_.affine ? weights + channels() : nullptr;
  }

  Options options_;
};

/// The channels in the block of bytes that an execution keeps for the layer.
inline BatchNormChannel* channels_in(std::byte* statistics) {
  return reinterpret_cast<BatchNormChannel*>(statistics);
}
inline const BatchNormChannel* channels_in(const std::byte* statistics) {
  return reinterpret_cast<const BatchNormChannel*>(statistics);
}

// The layers `layer_norm: {eps: 1e-5, affine: true}` and `group_norm: {groups: 8, eps: 1e-5, affine: true}`, also
// written `group_norm: 8`.

/// y = (x - mean) / sqrt(variance + eps) weight + bias, with mean and variance of some neighbouring channels of one
/// sample, in training as in evaluation: as PyTorch's GroupNorm, or of all its numbers, as PyTorch's LayerNorm over
/// [channels, height, width]. NAME.weight and NAME.bias, of each channel or of each number, are trained, unless
/// `affine: false`. What is kept between the passes is mean and 1 / deviation of each group.
class GroupNormLayer final : public Layer {
 public:
  GroupNormLayer(const LayerPlace& place, const GroupNormOp& options);
  /// @throws ConfigError, ShapeError  if an option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_layer_norm(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return options_; }
  bool needs_input() const override { return true; }
  std::size_t saved_bytes(int batch) const override {
    return shape_of(batch).statistics_size() * sizeof(float);
  }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  GroupNormShape shape_of(int batch) const;
  const float* weight_of(const float* weights) const { return options_.affine ? weights : nullptr; }
  const float* bias_of(const float* weights) const {
    return options_.affine ? weights + options_.shape.channels : nullptr;
  }

  GroupNormOp options_;
};

}  // namespace lockstep
