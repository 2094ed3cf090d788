// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `gelu: {approximate: none}`, also `approximate: tanh`.
#pragma once

#include "kernels/activation.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// x and y [channels, height, width, N], number by number, padding columns too; there are no parameters.
///
///   none  y = x P(x) with P(x) = (1 + erf(x / sqrt 2)) / 2, the share of normal numbers below x
///         dx = dy (P(x) + x p(x)) with p(x) = e^(-x^2 / 2) / sqrt(2 pi)
///   tanh  y = x (1 + t) / 2 with t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)
///         dx = dy ((1 + t) / 2 + x (1 - t^2) / 2 du/dx)
///
/// y overwrites memory of its own: backward reads x. dx may lie over dy. NaN gives NaN. Both are functions of
/// kernels/numerics/activation_math.inc, which says how and from where: the same bits on every device.
/// Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016. Oracle: reference::curve_of (double), PyTorch's gelu.
class GeluLayer final : public Layer {
 public:
  /// @param kind  kGelu or kGeluTanh: those whose derivative is computed from x
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
