// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What conv2d and linear have in common: a weight, and a bias unless the layer is told to have none.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace lockstep {

/// NAME.weight, of which the first dimension is that of the outputs, and NAME.bias [outputs]. The kernels always take
/// a bias: without one they add zeros, and put its gradient where it is not read.
class WeightedLayer : public Layer {
 public:
  bool needs_input() const override { return true; }
  std::size_t missing_bias() const override { return has_bias_ ? 0 : outputs_; }

 protected:
  WeightedLayer(LayerPlace place, const ImageShape& output, const std::vector<int>& weight_shape,
                bool has_bias);

  // On a CPU: memory of the calling thread, where there is no bias.
  const float* bias(const LayerTensors& tensors) const;
  /// @param terms  of the gradient, tensors.term_stride apart
  float* bias_gradient(const LayerTensors& tensors, int terms) const;
  /// Numbers that both take.
  std::uint64_t stand_in_numbers(int terms) const {
    return has_bias_ ? 0 : 2 * std::uint64_t{outputs_} + (terms - 1) * std::uint64_t{parameter_size()};
  }

  const float* device_bias(const DeviceLayerTensors& tensors) const;
  ExactGradient device_gradient(const DeviceLayerTensors& tensors) const;

  std::size_t weight_size() const { return parameters().front().size; }

  /// ", no bias", for describe().
  const char* bias_in_words() const { return has_bias_ ? "" : ", no bias"; }

 private:
  std::size_t outputs_;
  bool has_bias_;
};

// The layer `conv2d: {out, kernel, stride: 1, padding: 0, dilation: 1, groups: 1, bias: true}`.

/// A two-dimensional convolution; NAME.weight [out, in / groups, height, width], NAME.bias [out].
class Conv2dLayer final : public WeightedLayer {
 public:
  /// @param shape  with batch 1
  Conv2dLayer(LayerPlace place, const Conv2dShape& shape, bool has_bias);
  /// @throws ConfigError, ShapeError  if an option is wrong or the kernel is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return shape_; }
  double flops_per_sample() const override { return shape_.flops(); }
  std::uint64_t scratch_numbers(int columns) const override;
  /// Not with padding, for which each call of the gradient copies the input.
  bool splits_outputs() const override { return shape_.padding == 0 && shape_.groups == 1; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  int gradient_terms(int grain) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  std::optional<std::string> beyond_device() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Conv2dShape shape_of(int batch) const;
  /// Of the pass's channels.
  Conv2dShape shape_of(const LayerPass& pass) const;
  /// Weights before those of the pass's channels.
  std::size_t weights_before(const LayerPass& pass) const;

  Conv2dShape shape_;
};

// The layer `linear: {out, bias: true}`, also written `linear: 50` or `linear: classes`.

/// y = w x + b over all features of the input, whatever its shape; NAME.weight [out, in], NAME.bias [out].
class LinearLayer final : public WeightedLayer {
 public:
  LinearLayer(const LayerPlace& place, int outputs, bool has_bias);
  /// @throws ConfigError, ShapeError  if an option is wrong or the weights are too many
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return shape_of(1); }
  double flops_per_sample() const override { return shape_of(1).flops(); }
  std::uint64_t scratch_numbers(int columns) const override;
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  LinearShape shape_of(int batch) const { return {batch, input().features(), output().channels}; }
};

}  // namespace lockstep
