// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers `layer_norm: {eps: 1e-5, affine: true}` and `group_norm: {groups: 8, eps: 1e-5, affine: true}`, also
/// written `group_norm: 8`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <string>

namespace lockstep {

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
