// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that work on each element by itself: relu, the other activations, dropout.
#include "kernels/device_ops.hpp"
#include "kernels/shapes.hpp"
#include "models/layers/layer_kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

namespace lockstep {
namespace {

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
///   hardswish    y = x hardsigmoid(x)              dx = dy (x / 3 + 1/2) between -3 and 3; 0 before that, dy after
///   relu6        y = min(max(x, 0), 6)             dx = dy where 0 < y < 6, else 0
///
/// If backward reads y, y is written over x, unless x is needed afterwards; dx may lie over dy. NaN gives NaN. All
/// are functions of kernels/numerics/activation_math.inc, which says how and from where: the same bits on
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
  static std::unique_ptr<Layer> make_gelu(const LayerOptions& options, const LayerPlace& place) {
    constexpr std::array<std::string_view, 2> kChoices{"none", "tanh"};
    const bool exact = options.choice("approximate", kChoices) == 0;
    return std::make_unique<ActivationLayer>(place, exact ? Activation::kGelu : Activation::kGeluTanh);
  }
  static std::unique_ptr<Layer> make_leaky_relu(const LayerOptions& options, const LayerPlace& place) {
    const auto slope = static_cast<float>(options.number("slope", {0, 1}, 0.01));
    return std::make_unique<ActivationLayer>(place, ActivationFunction(Activation::kLeakyRelu, slope));
  }
  static std::unique_ptr<Layer> make_elu(const LayerOptions& options, const LayerPlace& place) {
    const auto alpha = static_cast<float>(options.number("alpha", {0, 100}, 1));
    return std::make_unique<ActivationLayer>(place, ActivationFunction(Activation::kElu, alpha));
  }

  std::string describe() const override {
    constexpr std::array<std::string_view, 10> kNames{"tanh",       "sigmoid", "gelu", "gelu by tanh",
                                                      "leaky_relu", "elu",     "silu", "hardsigmoid",
                                                      "hardswish",  "relu6"};
    const std::string name(kNames.at(static_cast<std::size_t>(function_.kind)));
    const bool has_number = function_.kind == Activation::kLeakyRelu || function_.kind == Activation::kElu;
    return has_number ? fmt::format("{} {}", name, function_.number) : name;
  }
  LayerOp op() const override { return ActivationOp{function_}; }
  OutputMemory output_memory() const override {
    return function_.saves_input() ? OutputMemory::kNew : OutputMemory::kInPlace;
  }
  bool needs_input() const override { return function_.saves_input(); }
  bool needs_output() const override { return !function_.saves_input(); }
  ImagePart reads_for(const ImagePart& of_output) const override { return of_output; }
  /// Networks with tanh, sigmoid and gelu keep the memory that they had.
  bool is_channelwise() const override { return function_.kind >= Activation::kLeakyRelu; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::activation_forward(function_, numbers_of(output(), pass.batch, pass.channels), tensors.x, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::activation_backward(function_, numbers_of(output(), pass.batch, pass.channels), saved_of(tensors),
                             tensors.dy, tensors.dx);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.activation_forward(pass.stream, function_, numbers_of(output(), pass.batch), tensors.x,
                                tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.activation_backward(pass.stream, function_, numbers_of(output(), pass.batch), saved_of(tensors),
                                 tensors.dy, tensors.dx);
  }

 private:
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

  std::string describe() const override { return "relu"; }
  LayerOp op() const override { return ReluOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  std::size_t saved_bytes(int batch) const override { return sign_bytes(numbers_of(output(), batch)); }
  /// Logits need both signs.
  bool may_be_last() const override { return false; }
  bool is_channelwise() const override { return true; }
  ImagePart reads_for(const ImagePart& of_output) const override { return of_output; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::relu_forward(numbers_of(output(), pass.batch, pass.channels), tensors.x, tensors.y,
                      pass.training ? tensors.saved : nullptr);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::relu_backward(numbers_of(output(), pass.batch, pass.channels), tensors.saved, tensors.dy,
                       tensors.dx);
  }
  DeviceForm device_form() const override { return DeviceForm::epilogue_step({.kind = EpilogueKind::kRelu}); }
};

// The layers `dropout: {p: 0.5}` and `dropout2d: {p: 0.5}`, also written `dropout: 0.5`.

/// In training, sets units to zero with probability p and scales the others by 1 / (1 - p). Nothing in
/// evaluation. A unit is one number (dropout) or one channel of the image (dropout2d). The mask is not
/// stored: backward draws it again from the same key.
class DropoutLayer final : public Layer {
 public:
  enum class Unit { kElement, kChannel };

  DropoutLayer(const LayerPlace& place, Unit unit, float probability)
      : Layer(place, place.input), unit_(unit), probability_(probability) {}
  template <Unit kUnit>
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    return std::make_unique<DropoutLayer>(place, kUnit, options.probability("p", 0.5F));
  }

  std::string describe() const override {
    return fmt::format("{} {}", unit_ == Unit::kChannel ? "dropout2d" : "dropout", probability_);
  }
  LayerOp op() const override { return DropoutOp{probability_, drops_channels(), index()}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  ImagePart reads_for(const ImagePart& of_output) const override { return of_output; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    DropoutShape shape = shape_of(pass.batch);
    if (!pass.training) shape.probability = 0;
    if (shape.probability == 0 && tensors.x == tensors.y) return;
    cpu::dropout(shape, key_of(pass.key), tensors.x, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (probability_ == 0 && tensors.dx == tensors.dy) return;
    cpu::dropout(shape_of(pass.batch), key_of(pass.key), tensors.dy, tensors.dx);
  }
  DeviceForm device_form() const override {
    if (probability_ == 0) return DeviceForm::nothing();
    return DeviceForm::epilogue_step({EpilogueKind::kDropout, drops_channels(), index(), probability_});
  }

 private:
  /// Channels of more than one number.
  bool drops_channels() const { return unit_ == Unit::kChannel && input().height * input().width > 1; }
  DropoutShape shape_of(int batch) const {
    const ImageShape& image = input();
    if (unit_ == Unit::kElement) return {batch, image.features(), 1, probability_};
    return {batch, image.channels, image.height * image.width, probability_};
  }
  DropoutKey key_of(const PassKey& key) const { return {key.seed, key.step, index(), key.first_sample}; }

  Unit unit_;
  float probability_;
};

}  // namespace

std::vector<LayerKind> activation_kinds() {
  return {
      {"relu", "relu", "", {"name"}, make_without_options<ReluLayer>},
      {"relu6", "relu", "", {"name"}, ActivationLayer::make<Activation::kRelu6>},
      {"tanh", "tanh", "", {"name"}, ActivationLayer::make<Activation::kTanh>},
      {"sigmoid", "sigmoid", "", {"name"}, ActivationLayer::make<Activation::kSigmoid>},
      {"gelu", "gelu", "", {"name", "approximate"}, ActivationLayer::make_gelu},
      {"leaky_relu", "leaky", "slope", {"name", "slope"}, ActivationLayer::make_leaky_relu},
      {"elu", "elu", "alpha", {"name", "alpha"}, ActivationLayer::make_elu},
      {"silu", "silu", "", {"name"}, ActivationLayer::make<Activation::kSilu>},
      {"hardsigmoid", "hsigmoid", "", {"name"}, ActivationLayer::make<Activation::kHardSigmoid>},
      {"hardswish", "hswish", "", {"name"}, ActivationLayer::make<Activation::kHardSwish>},
      {"dropout", "drop", "p", {"name", "p"}, DropoutLayer::make<DropoutLayer::Unit::kElement>},
      {"dropout2d", "drop", "p", {"name", "p"}, DropoutLayer::make<DropoutLayer::Unit::kChannel>},
  };
}

}  // namespace lockstep
