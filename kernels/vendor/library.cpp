// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Maps from shapes to layers and from streams to contexts, filled as they are asked for.
#include "kernels/vendor/library.hpp"

#include "kernels/cuda/error.hpp"
#include "kernels/vendor/conv2d_algorithm.hpp"

#include <utility>

namespace lockstep::vendor {

Library::Library(Device& device, VendorAlgorithms algorithms) : device_(device), algorithms_(algorithms) {
  LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
  const CudnnHandle cudnn = create_cudnn();
  const CublasHandle cublas = create_cublas();
}

StreamContext& Library::context(cudaStream_t stream) {
  return contexts_.try_emplace(stream, device_, stream).first->second;
}

Conv2d& Library::layer(const Conv2dShape& shape) {
  const auto& [batch, channels, height, width, out, kernel_height, kernel_width, stride, padding, groups,
               dilation, pool] = shape;  // cuDNN computes gradients for all of y
  const std::array key = {batch,        channels, height,  width,  out,     kernel_height,
                          kernel_width, stride,   padding, groups, dilation};
  return convolutions_.try_emplace(key, shape, algorithms_).first->second;
}

Linear& Library::layer(const LinearShape& shape) {
  const std::array key = {shape.batch, shape.in_features, shape.out_features};
  return linears_.try_emplace(key, shape).first->second;
}

Pool& Library::pool(const Pool2dShape& shape, cudnnPoolingMode_t mode) {
  const auto& [batch, channels, height, width, kernel, stride, padding] = shape;
  const std::array key = {batch, channels, height, width, kernel, stride, padding, static_cast<int>(mode)};
  return pools_.try_emplace(key, shape, mode).first->second;
}

// Three directions, each with the algorithm that was the fastest where that was asked for.

namespace {

/// c = the direction's operation on a and b. Each is a descriptor and the numbers that it describes.
template <typename Api, typename A, typename B, typename C>
void run(StreamContext& context, VendorAlgorithms algorithms, std::optional<Conv2dAlgorithm<Api>>& chosen,
         cudnnConvolutionDescriptor_t convolution, A a, B b, C c) {
  if (!chosen) {
    chosen = choose_algorithm<Api>(context.cudnn(), algorithms, a.first, b.first, convolution, c.first);
  }
  void* workspace = context.bytes(VendorScratch::kWorkspace, chosen->workspace_bytes);
  LOCKSTEP_CUDNN(Api::run(context.cudnn(), &kOne, a.first, a.second, b.first, b.second, convolution,
                          chosen->algorithm, workspace, chosen->workspace_bytes, &kZero, c.first, c.second));
}

}  // namespace

Conv2d::Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms)
    : shape_(shape),
      algorithms_(algorithms),
      x_(describe_tensor(shape.batch, input())),
      y_(describe_tensor(shape.batch, output())),
      w_(describe_filter(shape)),
      convolution_(describe_convolution(shape)),
      bias_(shape.batch, output()) {}

void Conv2d::forward(StreamContext& context, const float* x, const float* w, float* y) {
  run<ForwardApi>(context, algorithms_, forward_, convolution_.get(),
                  std::pair{x_.get(), context.aligned(VendorScratch::kX, x, shape_.in_size())},
                  std::pair{w_.get(), context.aligned(VendorScratch::kW, w, shape_.weight_size())},
                  std::pair{y_.get(), y});
}

void Conv2d::backward_data(StreamContext& context, const float* dy, const float* w, float* dx) {
  run<BackwardDataApi>(context, algorithms_, backward_data_, convolution_.get(),
                       std::pair{w_.get(), context.aligned(VendorScratch::kW, w, shape_.weight_size())},
                       std::pair{y_.get(), context.aligned(VendorScratch::kDy, dy, shape_.out_size())},
                       std::pair{x_.get(), dx});
}

void Conv2d::backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) {
  run<BackwardWeightsApi>(context, algorithms_, backward_weights_, convolution_.get(),
                          std::pair{x_.get(), context.aligned(VendorScratch::kX, x, shape_.in_size())},
                          std::pair{y_.get(), context.aligned(VendorScratch::kDy, dy, shape_.out_size())},
                          std::pair{w_.get(), dw});
}

// cuBLAS counts elements down the columns, so our matrix [rows][columns] is for it the transpose, of
// `columns` rows. x is I by N, w is I by O, y is O by N.

namespace {

/// A matrix as it lies in memory, and whether its transpose is meant.
struct Factor {
  const float* data;
  int rows;  ///< rows in cuBLAS's order, of the matrix in memory
  cublasOperation_t as = CUBLAS_OP_N;
};

/// c [rows by columns] = a b, with `inner` terms each.
void multiply(StreamContext& context, int rows, int columns, int inner, const Factor& a, const Factor& b,
              float* c) {
  LOCKSTEP_CUBLAS(cublasSgemm(context.cublas(), a.as, b.as, rows, columns, inner, &kOne, a.data, a.rows,
                              b.data, b.rows, &kZero, c, rows));
}

}  // namespace

Linear::Linear(const LinearShape& shape) : shape_(shape), bias_(shape.batch, output()) {}

void Linear::forward(StreamContext& context, const float* x, const float* w, float* y) const {
  const auto [batch, in, out] = shape_;
  multiply(context, out, batch, in, {w, in, CUBLAS_OP_T}, {x, in}, y);
}

void Linear::backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const {
  const auto [batch, in, out] = shape_;
  multiply(context, in, batch, out, {w, in}, {dy, out}, dx);
}

void Linear::backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const {
  const auto [batch, in, out] = shape_;
  multiply(context, in, out, batch, {x, in}, {dy, out, CUBLAS_OP_T}, dw);
}

// Max and average pools in both directions.

Pool::Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode)
    : x_(describe_tensor(shape.batch, {shape.channels, shape.in_height, shape.in_width})),
      y_(describe_tensor(shape.batch, {shape.channels, shape.out_height(), shape.out_width()})),
      pool_(describe_pool(shape, mode)) {}

void Pool::forward(StreamContext& context, const float* x, float* y) const {
  LOCKSTEP_CUDNN(cudnnPoolingForward(context.cudnn(), pool_.get(), &kOne, x_.get(), x, &kZero, y_.get(), y));
}

void Pool::backward(StreamContext& context, const float* x, const float* y, const float* dy,
                    float* dx) const {
  LOCKSTEP_CUDNN(cudnnPoolingBackward(context.cudnn(), pool_.get(), &kOne, y_.get(), y, y_.get(), dy,
                                      x_.get(), x, &kZero, x_.get(), dx));
}

// Adding a bias to every channel, and its gradient.

ChannelBias::ChannelBias(int batch, const ImageShape& output)
    : y_size_(static_cast<std::size_t>(batch) * static_cast<std::size_t>(output.features())),
      y_(describe_tensor(batch, output)),
      b_(describe_tensor(1, {output.channels, 1, 1})) {}

void ChannelBias::add(StreamContext& context, const float* b, float* y) const {
  LOCKSTEP_CUDNN(cudnnAddTensor(context.cudnn(), &kOne, b_.get(), b, &kOne, y_.get(), y));
}

void ChannelBias::gradient(StreamContext& context, const float* dy, float* db) const {
  LOCKSTEP_CUDNN(cudnnConvolutionBackwardBias(context.cudnn(), &kOne, y_.get(),
                                              context.aligned(VendorScratch::kDy, dy, y_size_), &kZero,
                                              b_.get(), db));
}

}  // namespace lockstep::vendor
