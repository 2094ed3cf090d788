// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that work on each element by itself: relu, the other activations, dropout.
#pragma once

#include "kernels/shapes.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

// The layers `tanh`, `sigmoid`, `gelu: {approximate: none}`, `leaky_relu: {slope: 0.01}`, `elu: {alpha: 1}`, `silu`,
// `hardsigmoid`, `hardswish` and `relu6`.

/// x and y [channels, height, width, N], number by number, padding columns too; there are no parameters.
///
///   tanh         y = (e^x - e^-x) / (e^x + e^-x)   dx = dy (1 - y^2)
///   sigmoid      y = 1 / (1 + e^-x)                dx = dy y (1 - y)
///   gelu: none   y = x P(x) with P(x) = (1 + erf(x / sqrt 2)) / 2, the share of normal numbers below x
///                dx = dy (P(x) + x p(x)) with p(x) = e^(-x^2 / 2) / sqrt(2 pi)
///   gelu: tanh   y = x (1 + t) / 2 with t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)
///                dx = dy ((1 + t) / 2 + x (1 - t^2) / 2 du/dx)
///   leaky_relu   y = x, below 0 slope x            dx = dy, or where y is not positive slope dy
///   elu          y = x, below 0 alpha (e^x - 1)    dx = dy, or where y is not positive dy (y + alpha)
///   silu         y = x s with s = sigmoid(x)       dx = dy (s + x s (1 - s))
///   hardsigmoid  y = min(max(x + 3, 0), 6) / 6     dx = dy / 6 where 0 < y < 1, else 0
///   hardswish    y = x hardsigmoid(x)              dx = dy (x / 3 + 1/2) between -3 and 3; 0 before that, dy behind
///   relu6        y = min(max(x, 0), 6)             dx = dy where 0 < y < 6, else 0
///
/// Of those whose backward reads y, y is written over x, unless x is needed afterwards; dx may lie over dy. NaN gives
/// NaN. All are functions of kernels/numerics/activation_math.inc, which says how and from where: the same bits on
/// every device. Source of gelu: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016. Oracle: reference::curve_of
/// (double), PyTorch's functions of these names.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const LayerPlace& place, const ActivationFunction& function)
      : Layer(place, place.input), function_(function) {}
  template <Activation kKind>
  static std::unique_ptr<Layer> make(const LayerOptions& /*options*/, const LayerPlace& place) {
    return std::make_unique<ActivationLayer>(place, kKind);
  }
  /// @throws ConfigError  if the option is wrong
  static std::unique_ptr<Layer> make_gelu(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_leaky_relu(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_elu(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return ActivationOp{function_}; }
  OutputMemory output_memory() const override {
    return function_.saves_input() ? OutputMemory::kNew : OutputMemory::kInPlace;
  }
  bool needs_input() const override { return function_.saves_input(); }
  OutputNeed output_need() const override {
    return function_.saves_input() ? OutputNeed::kNothing : OutputNeed::kNumbers;
  }
  /// Networks with tanh, sigmoid and gelu keep the memory that they had.
  bool is_channelwise() const override { return function_.kind >= Activation::kLeakyRelu; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  std::size_t size_of(int batch, const ChannelRange& channels = {}) const {
    return std::size_t{1} * channels.of(output().channels) * output().height * output().width * batch;
  }
  template <typename Tensors>
  const float* saved_of(const Tensors& tensors) const {
    return function_.saves_input() ? tensors.x : tensors.y;
  }

  ActivationFunction function_;
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
