// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers in cuDNN's and cuBLAS's terms, made at their first use and kept, and a context for each
/// stream.
#pragma once

#include "kernels/vendor/conv2d_algorithm.hpp"
#include "kernels/vendor/handles.hpp"
#include "kernels/vendor/vendor.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <optional>

namespace lockstep::vendor {

// A pool of one shape by cuDNN.

/// Calls are queued on the context's stream.
class Pool {
 public:
  Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);
  void forward(StreamContext& context, const float* x, float* y) const;
  /// @param x, y  of the forward call. An average pool does not read them: any memory of their size will do.
  void backward(StreamContext& context, const float* x, const float* y, const float* dy, float* dx) const;

 private:
  TensorDescriptor x_, y_;
  PoolingDescriptor pool_;
};

// The bias of a convolution or linear layer by cuDNN.

class ChannelBias {
 public:
  ChannelBias(int batch, const ImageShape& output);
  /// y[n][k][p][q] += b[k]; b is_aligned()
  void add(StreamContext& context, const float* b, float* y) const;
  /// db[k] = sum of dy[n][k][p][q], overwritten, always in the same order.
  void gradient(StreamContext& context, const float* dy, float* db) const;

 private:
  std::size_t y_size_;
  TensorDescriptor y_, b_;
};

// A linear layer of one shape by cuBLAS.

/// x [N,I]  w [O,I]  y [N,O]. Calls are queued on the context's stream.
class Linear {
 public:
  explicit Linear(const LinearShape& shape);

  std::size_t weight_size() const { return shape_.weight_size(); }
  ImageShape input() const { return {shape_.in_features, 1, 1}; }
  ImageShape output() const { return {shape_.out_features, 1, 1}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = w x for each sample
  void forward(StreamContext& context, const float* x, const float* w, float* y) const;
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const;
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const;

 private:
  LinearShape shape_;
  ChannelBias bias_;
};

// A convolution of one shape by cuDNN.

/// Calls are queued on the context's stream; the first one in each direction chooses an algorithm.
class Conv2d {
 public:
  Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms);

  std::size_t weight_size() const { return shape_.weight_size(); }
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

class Library {
 public:
  /// Borrows the device.
  /// @throws DeviceError if the libraries cannot be used on it
  Library(Device& device, VendorAlgorithms algorithms);

  /// The context that the stream's work is queued with. The device is the calling thread's current one.
  StreamContext& context(cudaStream_t stream);

  Conv2d& layer(const Conv2dShape& shape);
  Linear& layer(const LinearShape& shape);
  Pool& pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);

 private:
  Device& device_;
  VendorAlgorithms algorithms_;
  std::map<cudaStream_t, StreamContext> contexts_;
  std::map<std::array<int, 11>, Conv2d> convolutions_;
  std::map<std::array<int, 3>, Linear> linears_;
  std::map<std::array<int, 8>, Pool> pools_;
};

}  // namespace lockstep::vendor
