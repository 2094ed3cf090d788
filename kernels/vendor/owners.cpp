// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Creates handles and descriptors, each in an owner before anything else can fail.
#include "kernels/vendor/owners.hpp"

namespace lockstep::vendor {

CudnnHandle create_cudnn() {
  cudnnHandle_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreate(&made));
  return CudnnHandle(made);
}

CublasHandle create_cublas() {
  cublasHandle_t made = nullptr;
  LOCKSTEP_CUBLAS(cublasCreate(&made));
  return CublasHandle(made);
}

TensorDescriptor describe_tensor(int batch, const ImageShape& shape) {
  cudnnTensorDescriptor_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreateTensorDescriptor(&made));
  TensorDescriptor owner(made);
  LOCKSTEP_CUDNN(cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch, shape.channels,
                                            shape.height, shape.width));
  return owner;
}

FilterDescriptor describe_filter(const Conv2dShape& shape) {
  cudnnFilterDescriptor_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreateFilterDescriptor(&made));
  FilterDescriptor owner(made);
  LOCKSTEP_CUDNN(cudnnSetFilter4dDescriptor(made, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, shape.out_channels,
                                            shape.in_channels, shape.kernel_height, shape.kernel_width));
  return owner;
}

ConvolutionDescriptor describe_convolution(const Conv2dShape& shape) {
  cudnnConvolutionDescriptor_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreateConvolutionDescriptor(&made));
  ConvolutionDescriptor owner(made);
  LOCKSTEP_CUDNN(cudnnSetConvolution2dDescriptor(made, shape.padding, shape.padding, shape.stride,
                                                 shape.stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                                 CUDNN_DATA_FLOAT));
  LOCKSTEP_CUDNN(cudnnSetConvolutionMathType(made, CUDNN_FMA_MATH));
  return owner;
}

PoolingDescriptor describe_pool(const Pool2dShape& shape, cudnnPoolingMode_t mode) {
  cudnnPoolingDescriptor_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreatePoolingDescriptor(&made));
  PoolingDescriptor owner(made);
  LOCKSTEP_CUDNN(cudnnSetPooling2dDescriptor(made, mode, CUDNN_PROPAGATE_NAN, shape.kernel, shape.kernel,
                                             shape.padding, shape.padding, shape.stride, shape.stride));
  return owner;
}

}  // namespace lockstep::vendor
