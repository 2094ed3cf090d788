// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `global_avg_pool`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// The mean of each channel: an image of any size becomes [channels, 1, 1].
class GlobalAvgPoolLayer final : public Layer {
 public:
  explicit GlobalAvgPoolLayer(const LayerPlace& place) : Layer(place, {place.input.channels, 1, 1}) {}
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "global_avg_pool"; }
  LayerOp op() const override { return GlobalAvgPoolOp{input()}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
};

}  // namespace lockstep
