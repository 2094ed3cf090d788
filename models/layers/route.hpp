// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `route: {from: NAME}`, also written `route: NAME`: the list goes on from an earlier layer.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <string>

namespace lockstep {

/// y = the output of an earlier layer; what stands before is not read, unless an `add` names it.
class RouteLayer final : public Layer {
 public:
  RouteLayer(const LayerPlace& place, std::string from, std::size_t branch, const ImageShape& shape)
      : Layer(place, shape), from_(std::move(from)), branch_(branch) {}
  /// @throws ConfigError  there is no such layer before this one
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "route " + from_; }
  LayerOp op() const override { return RouteOp{}; }
  std::optional<std::size_t> branch() const override { return branch_; }
  bool reads_layer_before() const override { return false; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  std::size_t size_of(const ImageShape& shape, int batch) const {
    return std::size_t{1} * shape.features() * batch;
  }

  std::string from_;
  std::size_t branch_;
};

}  // namespace lockstep
