// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `linear: {out, bias: true}`, also written `linear: 50` or `linear: classes`.
#pragma once

#include "models/layer_options.hpp"
#include "models/layers/weighted_layer.hpp"

#include <memory>

namespace lockstep {

/// y = w x + b over all features of the input, whatever its shape; NAME.weight [out, in], NAME.bias [out].
class LinearLayer final : public WeightedLayer {
 public:
  LinearLayer(const LayerPlace& place, int outputs, bool has_bias);
  /// @throws ConfigError, ShapeError  if an option is wrong or the weights are too many
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return shape_of(1); }
  double flops_per_sample() const override { return shape_of(1).flops(); }
  std::uint64_t scratch_numbers(int columns) const override;
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  LinearShape shape_of(int batch) const { return {batch, input().features(), output().channels}; }
};

}  // namespace lockstep
