// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `conv2d: {out, kernel, stride: 1, padding: 0, bias: true}`.
#pragma once

#include "models/layer_options.hpp"
#include "models/layers/weighted_layer.hpp"

#include <memory>

namespace lockstep {

/// A two-dimensional convolution; NAME.weight [out, in, height, width], NAME.bias [out].
class Conv2dLayer final : public WeightedLayer {
 public:
  /// @param shape  with batch 1
  Conv2dLayer(LayerPlace place, const Conv2dShape& shape, bool has_bias);
  /// @throws ConfigError, ShapeError  if an option is wrong or the kernel is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return shape_; }
  double flops_per_sample() const override { return shape_.flops(); }
  std::uint64_t scratch_numbers(int columns) const override;
  /// Not with padding, for which each call of the gradient copies the input.
  bool splits_outputs() const override { return shape_.padding == 0; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  int gradient_terms(int grain) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  std::optional<std::string> beyond_device() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Conv2dShape shape_of(int batch) const;
  /// Of the pass's channels.
  Conv2dShape shape_of(const LayerPass& pass) const;
  /// Weights before those of the pass's channels.
  std::size_t weights_before(const LayerPass& pass) const;

  Conv2dShape shape_;
};

}  // namespace lockstep
