// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A convolution of one shape by cuDNN.
#pragma once

#include "kernels/vendor/channel_bias.hpp"
#include "kernels/vendor/conv2d_algorithm.hpp"

#include <optional>

namespace lockstep::vendor {

/// Calls are queued on the context's stream; the first one in each direction chooses an algorithm.
class Conv2d {
 public:
  Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms);

  std::size_t weight_size() const { return shape_.weight_size(); }
  int batch() const { return shape_.batch; }
  ImageShape input() const { return {shape_.in_channels, shape_.in_height, shape_.in_width}; }
  ImageShape output() const { return {shape_.out_channels, shape_.out_height(), shape_.out_width()}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = conv(x, w)
  void forward(StreamContext& context, const float* x, const float* w, float* y);
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx);
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw);

 private:
  Conv2dShape shape_;
  VendorAlgorithms algorithms_;
  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  ChannelBias bias_;
  std::optional<Conv2dAlgorithm<ForwardApi>> forward_;
  std::optional<Conv2dAlgorithm<BackwardDataApi>> backward_data_;
  std::optional<Conv2dAlgorithm<BackwardWeightsApi>> backward_weights_;
};

}  // namespace lockstep::vendor
