// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers `tanh` and `sigmoid`.
#pragma once

#include "kernels/activation.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// x and y [channels, height, width, N], number by number, padding columns too; there are no parameters and no options.
///
///   tanh     y = (e^x - e^-x) / (e^x + e^-x)   dx = dy (1 - y^2)
///   sigmoid  y = 1 / (1 + e^-x)                dx = dy y (1 - y)
///
/// y is written over x and dx over dy, unless x is needed afterwards; backward reads y. NaN gives NaN. Both are
/// functions of kernels/numerics/activation_math.inc, which says how and from where: the same bits on every device.
/// Oracle: reference::curve_of (double), PyTorch's tanh and sigmoid.
class ActivationLayer final : public Layer {
 public:
  /// @param kind  kTanh or kSigmoid: those whose derivative is computed from y
  ActivationLayer(const LayerPlace& place, Activation kind) : Layer(place, place.input), kind_(kind) {}
  static std::unique_ptr<Layer> make_tanh(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_sigmoid(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return ActivationOp{kind_}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  OutputNeed output_need() const override { return OutputNeed::kNumbers; }
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
