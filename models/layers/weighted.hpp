// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What conv2d, conv_transpose2d and linear have in common: a weight, and a bias unless the layer is told to have none.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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
  /// @param terms  of the gradient, tensors.term_stride apart
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
  /// ", no bias", for describe().
  const char* bias_in_words() const { return has_bias_ ? "" : ", no bias"; }

 private:
  std::size_t outputs_;
  bool has_bias_;
};

// What conv2d and conv_transpose2d have in common.

/// "conv2d 10@5x5 stride 2": of the options those that are not the defaults.
std::string convolution_in_words(const char* kind, int outputs, const Conv2dShape& shape,
                                 int output_padding = 0);
/// Numbers that the kernels of a convolution keep: its input in a frame of zeros, or what a stride leaves of it, its
/// filters in another order, the places of its taps, the terms of its gradient, a part of dy, of 1x1 filters what a
/// tile reads, and with a stride what the pixels of a row read.
/// @param parameters  of the layer
std::uint64_t convolution_scratch(const Conv2dShape& shape, int columns, int terms, std::size_t parameters);

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

// The layer `conv_transpose2d: {out, kernel, stride: 1, padding: 0, output_padding: 0, dilation: 1, groups: 1, bias:
// true}`.

/// A transposed convolution: each pixel of x adds a filter to y. NAME.weight [in, out / groups, height, width],
/// NAME.bias [out]. All directions are those of the convolution from y to x (docs/arithmetic.md).
class ConvTranspose2dLayer final : public WeightedLayer {
 public:
  /// @param convolution  from this layer's output to its input, with batch 1
  ConvTranspose2dLayer(LayerPlace place, const Conv2dShape& convolution, bool has_bias);
  /// @throws ConfigError, ShapeError  if an option is wrong or the output is empty or too large
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return ConvTransposeOp{convolution_}; }
  double flops_per_sample() const override { return convolution_.flops(); }
  std::uint64_t scratch_numbers(int columns) const override;
  /// The convolution's bias, or the filters of bias_sums(), whichever are more.
  std::size_t missing_bias() const override;
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  int gradient_terms(int grain) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  std::optional<std::string> beyond_device() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Conv2dShape convolution_of(int batch) const;
  /// A 1x1 convolution of each channel of y by itself: the gradient of its bias is this layer's.
  Conv2dShape bias_sums(int batch) const;

  Conv2dShape convolution_;
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
