// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers in cuDNN's and cuBLAS's terms, made at their first use and kept, and a context for each
/// stream. All calls are queued on the context's stream.
#pragma once

#include "kernels/cuda/error.hpp"
#include "kernels/vendor/conv2d_algorithm.hpp"
#include "kernels/vendor/handles.hpp"
#include "kernels/vendor/vendor.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace lockstep::vendor {

/// A pool of one shape by cuDNN.
class Pool {
 public:
  Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode)
      : x_(describe_tensor(shape.batch, {shape.channels, shape.in_height, shape.in_width})),
        y_(describe_tensor(shape.batch, {shape.channels, shape.out_height(), shape.out_width()})),
        pool_(describe_pool(shape, mode)) {}

  void forward(StreamContext& context, const float* x, float* y) const {
    LOCKSTEP_CUDNN(
        cudnnPoolingForward(context.cudnn(), pool_.get(), &kOne, x_.get(), x, &kZero, y_.get(), y));
  }
  /// @param x, y  of the forward call. An average pool does not read them: any memory of their size will do.
  void backward(StreamContext& context, const float* x, const float* y, const float* dy, float* dx) const {
    LOCKSTEP_CUDNN(cudnnPoolingBackward(context.cudnn(), pool_.get(), &kOne, y_.get(), y, y_.get(), dy,
                                        x_.get(), x, &kZero, x_.get(), dx));
  }

 private:
  TensorDescriptor x_, y_;
  PoolingDescriptor pool_;
};

/// The bias of a convolution or linear layer by cuDNN.
class ChannelBias {
 public:
  ChannelBias(int batch, const ImageShape& output)
      : y_size_(static_cast<std::size_t>(batch) * static_cast<std::size_t>(output.features())),
        y_(describe_tensor(batch, output)),
        b_(describe_tensor(1, {output.channels, 1, 1})) {}

  /// y[n][k][p][q] += b[k]; b is_aligned()
  void add(StreamContext& context, const float* b, float* y) const {
    LOCKSTEP_CUDNN(cudnnAddTensor(context.cudnn(), &kOne, b_.get(), b, &kOne, y_.get(), y));
  }
  /// db[k] = sum of dy[n][k][p][q], overwritten, always in the same order.
  void gradient(StreamContext& context, const float* dy, float* db) const {
    LOCKSTEP_CUDNN(cudnnConvolutionBackwardBias(context.cudnn(), &kOne, y_.get(),
                                                context.aligned(VendorScratch::kDy, dy, y_size_), &kZero,
                                                b_.get(), db));
  }

 private:
  std::size_t y_size_;
  TensorDescriptor y_, b_;
};

/// A linear layer of one shape by cuBLAS: x [N,I]  w [O,I]  y [N,O]. cuBLAS counts elements down the columns, so our
/// matrix [rows][columns] is for it the transpose, of `columns` rows. x is I by N, w is I by O, y is O by N.
class Linear {
 public:
  explicit Linear(const LinearShape& shape) : shape_(shape), bias_(shape.batch, output()) {}

  std::size_t weight_size() const { return shape_.weight_size(); }
  ImageShape input() const { return {shape_.in_features, 1, 1}; }
  ImageShape output() const { return {shape_.out_features, 1, 1}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = w x for each sample
  void forward(StreamContext& context, const float* x, const float* w, float* y) const {
    const auto [batch, in, out] = shape_;
    multiply(context, out, batch, in, {w, in, CUBLAS_OP_T}, {x, in}, y);
  }
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const {
    const auto [batch, in, out] = shape_;
    multiply(context, in, batch, out, {w, in}, {dy, out}, dx);
  }
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const {
    const auto [batch, in, out] = shape_;
    multiply(context, in, out, batch, {x, in}, {dy, out, CUBLAS_OP_T}, dw);
  }

 private:
  /// A matrix as it lies in memory, and whether its transpose is meant.
  struct Factor {
    const float* data;
    int rows;  ///< rows in cuBLAS's order, of the matrix in memory
    cublasOperation_t as = CUBLAS_OP_N;
  };

  /// c [rows by columns] = a b, with `inner` terms each.
  static void multiply(StreamContext& context, int rows, int columns, int inner, const Factor& a,
                       const Factor& b, float* c) {
    LOCKSTEP_CUBLAS(cublasSgemm(context.cublas(), a.as, b.as, rows, columns, inner, &kOne, a.data, a.rows,
                                b.data, b.rows, &kZero, c, rows));
  }

  LinearShape shape_;
  ChannelBias bias_;
};

/// A convolution of one shape by cuDNN. The first call in each direction chooses an algorithm: the one that was the
/// fastest, where that was asked for.
class Conv2d {
 public:
  Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms)
      : shape_(shape),
        algorithms_(algorithms),
        x_(describe_tensor(shape.batch, input())),
        y_(describe_tensor(shape.batch, output())),
        w_(describe_filter(shape)),
        convolution_(describe_convolution(shape)),
        bias_(shape.batch, output()) {}

  std::size_t weight_size() const { return shape_.weight_size(); }
  ImageShape input() const { return {shape_.in_channels, shape_.in_height, shape_.in_width}; }
  ImageShape output() const { return {shape_.out_channels, shape_.out_height(), shape_.out_width()}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = conv(x, w)
  void forward(StreamContext& context, const float* x, const float* w, float* y) {
    run(context, forward_, std::pair{x_.get(), context.aligned(VendorScratch::kX, x, shape_.in_size())},
        std::pair{w_.get(), context.aligned(VendorScratch::kW, w, shape_.weight_size())},
        std::pair{y_.get(), y});
  }
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx) {
    run(context, backward_data_,
        std::pair{w_.get(), context.aligned(VendorScratch::kW, w, shape_.weight_size())},
        std::pair{y_.get(), context.aligned(VendorScratch::kDy, dy, shape_.out_size())},
        std::pair{x_.get(), dx});
  }
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) {
    run(context, backward_weights_,
        std::pair{x_.get(), context.aligned(VendorScratch::kX, x, shape_.in_size())},
        std::pair{y_.get(), context.aligned(VendorScratch::kDy, dy, shape_.out_size())},
        std::pair{w_.get(), dw});
  }

 private:
  /// c = the direction's operation on a and b. Each is a descriptor and the numbers that it describes.
  template <typename Api, typename A, typename B, typename C>
  void run(StreamContext& context, std::optional<Conv2dAlgorithm<Api>>& chosen, A a, B b, C c) {
    if (!chosen) {
      chosen =
          choose_algorithm<Api>(context.cudnn(), algorithms_, a.first, b.first, convolution_.get(), c.first);
    }
    void* workspace = context.bytes(VendorScratch::kWorkspace, chosen->workspace_bytes);
    LOCKSTEP_CUDNN(Api::run(context.cudnn(), &kOne, a.first, a.second, b.first, b.second, convolution_.get(),
                            chosen->algorithm, workspace, chosen->workspace_bytes, &kZero, c.first,
                            c.second));
  }

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

/// Maps from shapes to layers and from streams to contexts, filled as they are asked for.
class Library {
 public:
  /// Borrows the device.
  /// @throws DeviceError if the libraries cannot be used on it
  Library(Device& device, VendorAlgorithms algorithms) : device_(device), algorithms_(algorithms) {
    LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
    const CudnnHandle cudnn = create_cudnn();
    const CublasHandle cublas = create_cublas();
  }

  /// The context that the stream's work is queued with. The device is the calling thread's current one.
  StreamContext& context(cudaStream_t stream) {
    return contexts_.try_emplace(stream, device_, stream).first->second;
  }

  Conv2d& layer(const Conv2dShape& shape) {
    const auto& [batch, channels, height, width, out, kernel_height, kernel_width, stride, padding, groups,
                 dilation, pool] = shape;  // cuDNN computes gradients for all of y
    const std::array key = {batch,        channels, height,  width,  out,     kernel_height,
                            kernel_width, stride,   padding, groups, dilation};
    return convolutions_.try_emplace(key, shape, algorithms_).first->second;
  }
  Linear& layer(const LinearShape& shape) {
    const std::array key = {shape.batch, shape.in_features, shape.out_features};
    return linears_.try_emplace(key, shape).first->second;
  }
  Pool& pool(const Pool2dShape& shape, cudnnPoolingMode_t mode) {
    const auto& [batch, channels, height, width, kernel, stride, padding] = shape;
    const std::array key = {batch, channels, height, width, kernel, stride, padding, static_cast<int>(mode)};
    return pools_.try_emplace(key, shape, mode).first->second;
  }

 private:
  Device& device_;
  VendorAlgorithms algorithms_;
  std::map<cudaStream_t, StreamContext> contexts_;
  std::map<std::array<int, 11>, Conv2d> convolutions_;
  std::map<std::array<int, 3>, Linear> linears_;
  std::map<std::array<int, 8>, Pool> pools_;
};

}  // namespace lockstep::vendor
