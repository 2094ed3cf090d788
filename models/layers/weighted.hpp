// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Base of conv2d, conv_transpose2d and linear: a weight, and a bias unless the layer is told to have none.
#pragma once

#include "kernels/cpu/int16/ops.hpp"
#include "models/device_layer.hpp"
#include "models/layer.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// NAME.weight and NAME.bias [channels of the output]. Kernels take a bias: without one they add zeros, and put its
/// gradient where it is not read.
class WeightedLayer : public Layer {
 public:
  bool needs_input() const override { return true; }
  std::size_t missing_bias() const override { return has_bias_ ? 0 : outputs_; }

 protected:
  WeightedLayer(LayerPlace place, const ImageShape& output, const std::vector<int>& weight_shape,
                bool has_bias);

  // On a CPU: memory of the calling thread, where there is no bias.
  const float* bias(const LayerTensors& tensors) const;
  /// @param terms  terms of the gradient, at a distance of tensors.term_stride
  float* bias_gradient(const LayerTensors& tensors, int terms) const;
  /// Memory of the calling thread for terms that are of nothing.
  static float* unread_terms(std::size_t size, std::size_t term_stride, int terms);
  /// Numbers that both take.
  std::uint64_t stand_in_numbers(int terms) const {
    return has_bias_ ? 0 : 2 * std::uint64_t{outputs_} + (terms - 1) * std::uint64_t{parameter_size()};
  }

  const float* device_bias(const DeviceLayerTensors& tensors) const;
  ExactGradient device_gradient(const DeviceLayerTensors& tensors) const;

  std::size_t weight_size() const { return parameters().front().size; }

  bool has_bias() const { return has_bias_; }
  bool is_int16() const { return precision() == Precision::kInt16; }
  static cpu::Operand operand_x(const LayerTensors& tensors) { return {tensors.x, tensors.maxima_of_x}; }
  static cpu::Operand operand_dy(const LayerTensors& tensors) { return {tensors.dy, tensors.maxima_of_dy}; }
  /// The gradient of a convolution's filters, and of the bias, if there is one, of y as dy. That is counted where that is
  /// asked for.
  void int16_backward_weights(const Conv2dShape& shape, const LayerPass& pass, const LayerTensors& tensors,
                              const cpu::Operand& x, const cpu::Operand& dy) const {
    cpu::int16::conv2d_backward_weights(shape, pass.samples, x, dy, tensors.gradients);
    const ImageShape& y = output();
    cpu::int16::count_rounding(std::size_t{1} * y.channels * y.height * y.width, pass.batch, pass.samples,
                               tensors.dy);
    if (has_bias_)
      cpu::int16::bias_gradient(y.channels, y.height * y.width, pass.batch, pass.samples, operand_dy(tensors),
                                tensors.gradients + weight_size());
  }
  /// ", no bias", for describe().
  const char* bias_in_words() const { return has_bias_ ? "" : ", no bias"; }

 private:
  std::size_t outputs_;
  bool has_bias_;
};

}  // namespace lockstep
