// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that work on each element by itself: relu, tanh, sigmoid, gelu, dropout.
#pragma once

#include "kernels/shapes.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

// The layers `tanh`, `sigmoid` and `relu6`.

/// x and y [channels, height, width, N], number by number, padding columns too; there are no parameters and no options.
///
///   tanh     y = (e^x - e^-x) / (e^x + e^-x)   dx = dy (1 - y^2)
///   sigmoid  y = 1 / (1 + e^-x)                dx = dy y (1 - y)
///   relu6    y = min(max(x, 0), 6)             dx = dy where 0 < y < 6, else 0
///
/// y is written over x and dx over dy, unless x is needed afterwards; backward reads y. NaN gives NaN. All are
/// functions of kernels/numerics/activation_math.inc, which says how and from where: the same bits on every device.
/// Oracle: reference::curve_of (double), PyTorch's tanh and sigmoid.
class ActivationLayer final : public Layer {
 public:
  /// @param kind  kTanh, kSigmoid or kRelu6: those whose derivative is computed from y
  ActivationLayer(const LayerPlace& place, Activation kind) : Layer(place, place.input), kind_(kind) {}
  static std::unique_ptr<Layer> make_tanh(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_sigmoid(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_relu6(const LayerOptions& options, const LayerPlace& place);

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

// The layer `relu`.

/// y = max(x, 0), in place; remembers which are positive.
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerPlace& place) : Layer(place, place.input) {}
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "relu"; }
  LayerOp op() const override { return ReluOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  std::size_t saved_bytes(int batch) const override {
    return sign_bytes(std::size_t{1} * output().features() * static_cast<std::size_t>(batch));
  }
  /// Logits need both signs.
  bool may_be_last() const override { return false; }
  bool is_channelwise() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return DeviceForm::epilogue_step({.kind = EpilogueKind::kRelu}); }

 private:
  std::size_t size_of(const LayerPass& pass) const {
    return std::size_t{1} * pass.channels.of(output().channels) * output().height * output().width *
           pass.batch;
  }
};

// The layer `gelu: {approximate: none}`, also `approximate: tanh`.

/// x and y [channels, height, width, N], number by number, padding columns too; there are no parameters.
///
///   none  y = x P(x) with P(x) = (1 + erf(x / sqrt 2)) / 2, the share of normal numbers below x
///         dx = dy (P(x) + x p(x)) with p(x) = e^(-x^2 / 2) / sqrt(2 pi)
///   tanh  y = x (1 + t) / 2 with t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)
///         dx = dy ((1 + t) / 2 + x (1 - t^2) / 2 du/dx)
///
/// y overwrites memory of its own: backward reads x. dx may lie over dy. NaN gives NaN. Both are functions of
/// kernels/numerics/activation_math.inc, which says how and from where: the same bits on every device. Source:
/// Hendrycks and Gimpel, Gaussian Error Linear Units, 2016. Oracle: reference::curve_of (double), PyTorch's gelu.
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

// The layers `dropout: {p: 0.5}` and `dropout2d: {p: 0.5}`, also written `dropout: 0.5`.

/// In training, sets units to zero with probability p and scales the others by 1 / (1 - p); nothing in
/// evaluation. A unit is one number (dropout) or one channel of the image (dropout2d). The mask is not
/// stored: backward draws it again from the same key.
class DropoutLayer final : public Layer {
 public:
  enum class Unit { kElement, kChannel };

  DropoutLayer(const LayerPlace& place, Unit unit, float probability)
      : Layer(place, place.input), unit_(unit), probability_(probability) {}
  static std::unique_ptr<Layer> make_elementwise(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_channelwise(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override;
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;

 private:
  /// Channels of more than one number.
  bool drops_channels() const { return unit_ == Unit::kChannel && input().height * input().width > 1; }
  DropoutShape shape_of(int batch) const;
  DropoutKey key_of(const PassKey& key) const;

  Unit unit_;
  float probability_;
};

}  // namespace lockstep
