// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WeightedLayer: its tensors, and what replaces a bias; and linear.
#include "models/layers/weighted.hpp"

#include "common/buffers.hpp"
#include "kernels/device_ops.hpp"
#include "models/layer_options.hpp"
#include "models/layers/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace lockstep {

namespace {

/// Buffers of the calling thread; they only grow.
thread_local std::vector<float> zero_bias, unread_gradient;

float* at_least(std::vector<float>& numbers, std::size_t size) {
  if (numbers.size() < size) numbers.resize(size);
  return numbers.data();
}

}  // namespace

WeightedLayer::WeightedLayer(LayerPlace place, const ImageShape& output, const std::vector<int>& weight_shape,
                             bool has_bias)
    : Layer(std::move(place), output),
      outputs_(static_cast<std::size_t>(output.channels)),
      has_bias_(has_bias) {
  const int fan_in = std::accumulate(weight_shape.begin() + 1, weight_shape.end(), 1, std::multiplies<>());
  add_parameter("weight", weight_shape, Parameter::Initial::kRandom, fan_in);
  if (has_bias) add_parameter("bias", {output.channels}, Parameter::Initial::kRandom, fan_in);
}

const float* WeightedLayer::bias(const LayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : at_least(zero_bias, outputs_);
}

float* WeightedLayer::bias_gradient(const LayerTensors& tensors, int terms) const {
  if (has_bias_) return tensors.gradients + weight_size();
  return unread_terms(outputs_, tensors.term_stride, terms);
}

float* WeightedLayer::unread_terms(std::size_t size, std::size_t term_stride, int terms) {
  return at_least(unread_gradient, size + term_stride * static_cast<std::size_t>(terms - 1));
}

const float* WeightedLayer::device_bias(const DeviceLayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : tensors.zero_bias;
}

ExactGradient WeightedLayer::device_gradient(const DeviceLayerTensors& tensors) const {
  return {tensors.gradients[0], has_bias_ ? tensors.gradients[1] : tensors.unread_gradient};
}

// The layer `linear: {out, bias: true}`, also written `linear: 50` or `linear: classes`.

namespace {

/// y = w x + b over all features of the input, of any shape; NAME.weight [out, in], NAME.bias [out].
class LinearLayer final : public WeightedLayer {
 public:
  LinearLayer(const LayerPlace& place, int outputs, bool has_bias)
      : WeightedLayer(place, {outputs, 1, 1}, {outputs, place.input.features()}, has_bias) {}
  /// @throws ConfigError, ShapeError  if an option is wrong or the weights are too many
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const int outputs = options.outputs();
    options.require_weights(checked_product(outputs, place.input.features()));
    return std::make_unique<LinearLayer>(place, outputs, options.yes_or_no("bias", true));
  }

  std::string describe() const override {
    return fmt::format("linear {} -> {}{}", input().features(), output().channels, bias_in_words());
  }
  LayerOp op() const override { return shape_of(1); }
  double flops_per_sample() const override { return shape_of(1).flops(); }
  /// Its input, transposed, or a slice of its output.
  std::uint64_t scratch_numbers(int columns) const override {
    if (is_int16()) return cpu::int16::scratch_numbers(convolution_of(1), columns);
    return checked_sum(checked_product(std::max(input().features() + 16, output().features()), columns),
                       stand_in_numbers(1));
  }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return cpu::int16::conv2d_forward(convolution_of(pass.batch), pass.samples, operand_x(tensors),
                                        tensors.weights, bias(tensors), tensors.y);
    cpu::linear_forward(shape_of(pass.batch), tensors.x, tensors.weights, bias(tensors), tensors.y);
  }
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return int16_backward_weights(convolution_of(pass.batch), pass, tensors, operand_x(tensors),
                                    operand_dy(tensors));
    cpu::linear_backward_weights(shape_of(pass.batch), tensors.x, tensors.dy, tensors.gradients,
                                 bias_gradient(tensors, 1));
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return cpu::int16::conv2d_backward_data(convolution_of(pass.batch), pass.samples, operand_dy(tensors),
                                              tensors.weights, nullptr, tensors.dx);
    cpu::linear_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, tensors.dx);
  }
  DeviceForm device_form() const override {
    return {.takes_epilogue = true, .stores_through = DeviceForm::StoresThrough::kAnyShape};
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.linear_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights,
                            device_bias(tensors), *tensors.epilogue, tensors.state, tensors.y, tensors.mask);
  }
  bool device_forward_loss(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                           const DeviceLoss& loss) const override {
    return tensors.epilogue->count == 0 &&
           pass.ops.linear_loss(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights,
                                device_bias(tensors), loss.shape, loss.target, tensors.y, tensors.through,
                                tensors.dx);
  }
  void device_backward_weights(const DeviceLayerPass& pass,
                               const DeviceLayerTensors& tensors) const override {
    pass.ops.linear_backward_weights(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x, tensors.dy,
                                     device_gradient(tensors));
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.linear_backward_data(pass.stream, shape_of(pass.batch), tensors.dy, tensors.weights,
                                  tensors.through, tensors.dx);
  }

 private:
  Conv2dShape convolution_of(int batch) const { return cpu::int16::as_convolution(shape_of(batch)); }
  LinearShape shape_of(int batch) const { return {batch, input().features(), output().channels}; }
};

}  // namespace

std::vector<LayerKind> linear_kinds() {
  return {
      {"linear", "fc", "out", {"name", "out", "bias"}, LinearLayer::make},
  };
}

}  // namespace lockstep
