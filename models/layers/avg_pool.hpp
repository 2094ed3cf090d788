// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `avg_pool: {kernel: 2, stride: as kernel, padding: 0}`, also written `avg_pool: 2`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/layers/pool_shape.hpp"

#include <memory>

namespace lockstep {

/// The mean of each window; padding counts as zeros.
class AvgPoolLayer final : public Layer {
 public:
  /// @param shape  with batch 1
  AvgPoolLayer(LayerPlace place, const Pool2dShape& shape);
  /// @throws ConfigError, ShapeError  if an option is wrong or the window is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return AvgPoolOp{shape_}; }
  bool is_channelwise() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Pool2dShape shape_of(int batch) const { return with_batch(shape_, batch); }
  Pool2dShape shape_of(const LayerPass& pass) const {
    return with_channels(shape_of(pass.batch), pass.channels);
  }

  Pool2dShape shape_;
};

}  // namespace lockstep
