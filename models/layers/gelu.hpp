// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `gelu: {approximate: none}`.
#pragma once

#include "kernels/activation.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// y = x times the probability that a normal number is below x, or its approximation by tanh; backward
/// computes the derivative of x.
class GeluLayer final : public Layer {
 public:
  GeluLayer(const LayerPlace& place, Activation kind) : Layer(place, place.input), kind_(kind) {}
  /// @throws ConfigError  if the option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return kind_ == Activation::kGelu ? "gelu" : "gelu by tanh"; }
  LayerOp op() const override { return ActivationOp{kind_}; }
  bool needs_input() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  std::size_t size_of(int batch) const { return std::size_t{1} * output().features() * batch; }

  Activation kind_;
};

}  // namespace lockstep
