// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owners of what cuDNN and cuBLAS create, and makers of cuDNN's descriptors: fp32, [sample][channel][row]
/// [column].
#pragma once

#include "kernels/shapes.hpp"
#include "kernels/vendor/error.hpp"

#include <memory>
#include <type_traits>

namespace lockstep::vendor {

struct Destroy {
  void operator()(cudnnHandle_t p) const noexcept { LOCKSTEP_VENDOR_NOEXCEPT(cudnnDestroy(p)); }
  void operator()(cublasHandle_t p) const noexcept { LOCKSTEP_VENDOR_NOEXCEPT(cublasDestroy(p)); }
  void operator()(cudnnTensorDescriptor_t p) const noexcept {
    LOCKSTEP_VENDOR_NOEXCEPT(cudnnDestroyTensorDescriptor(p));
  }
  void operator()(cudnnFilterDescriptor_t p) const noexcept {
    LOCKSTEP_VENDOR_NOEXCEPT(cudnnDestroyFilterDescriptor(p));
  }
  void operator()(cudnnConvolutionDescriptor_t p) const noexcept {
    LOCKSTEP_VENDOR_NOEXCEPT(cudnnDestroyConvolutionDescriptor(p));
  }
  void operator()(cudnnPoolingDescriptor_t p) const noexcept {
    LOCKSTEP_VENDOR_NOEXCEPT(cudnnDestroyPoolingDescriptor(p));
  }
};

/// T is a pointer to something opaque, as the libraries' handles are.
template <typename T>
using Owner = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;

using CudnnHandle = Owner<cudnnHandle_t>;
using CublasHandle = Owner<cublasHandle_t>;
using TensorDescriptor = Owner<cudnnTensorDescriptor_t>;
using FilterDescriptor = Owner<cudnnFilterDescriptor_t>;
using ConvolutionDescriptor = Owner<cudnnConvolutionDescriptor_t>;
using PoolingDescriptor = Owner<cudnnPoolingDescriptor_t>;

/// On the current device. Loads what the library consists of, which shows what is missing.
CudnnHandle create_cudnn();
CublasHandle create_cublas();

TensorDescriptor describe_tensor(int batch, const ImageShape& shape);
/// [out_channels][in_channels][kernel_height][kernel_width]
FilterDescriptor describe_filter(const Conv2dShape& shape);
/// Cross-correlation by fused multiply-adds in fp32: no TF32.
ConvolutionDescriptor describe_convolution(const Conv2dShape& shape);
PoolingDescriptor describe_pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);

}  // namespace lockstep::vendor
