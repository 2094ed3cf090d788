// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// cuDNN's and cuBLAS's handles and descriptors, each with an owner, and their errors as exceptions.
#include "kernels/vendor/handles.hpp"

#include "common/error.hpp"
#include "kernels/cuda/error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace lockstep::vendor {

// Creates handles and descriptors, each in an owner before anything else can fail.

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
                                            shape.group_inputs(), shape.kernel_height, shape.kernel_width));
  return owner;
}

ConvolutionDescriptor describe_convolution(const Conv2dShape& shape) {
  cudnnConvolutionDescriptor_t made = nullptr;
  LOCKSTEP_CUDNN(cudnnCreateConvolutionDescriptor(&made));
  ConvolutionDescriptor owner(made);
  LOCKSTEP_CUDNN(cudnnSetConvolution2dDescriptor(made, shape.padding, shape.padding, shape.stride,
                                                 shape.stride, shape.dilation, shape.dilation,
                                                 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  LOCKSTEP_CUDNN(cudnnSetConvolutionGroupCount(made, shape.groups));
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

// Handles bound to the stream, and scratch memory that only grows.

namespace {

constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;  // cuBLAS's demand on an H100

}  // namespace

bool is_aligned(const void* memory) {
  constexpr std::uintptr_t kAlignment = 16;
  return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
}

StreamContext::StreamContext(Device& device, cudaStream_t stream)
    : device_(device),
      stream_(stream),
      cublas_workspace_(device, kCublasWorkspaceBytes),
      cudnn_(create_cudnn()),
      cublas_(create_cublas()) {
  LOCKSTEP_CUDNN(cudnnSetStream(cudnn(), stream));
  // In its default mode cuBLAS computes fp32 products in fp32, without atomic additions.
  LOCKSTEP_CUBLAS(cublasSetMathMode(cublas(), CUBLAS_DEFAULT_MATH));
  LOCKSTEP_CUBLAS(cublasSetAtomicsMode(cublas(), CUBLAS_ATOMICS_NOT_ALLOWED));
  LOCKSTEP_CUBLAS(cublasSetStream(cublas(), stream));  // it removes an earlier workspace
  LOCKSTEP_CUBLAS(cublasSetWorkspace(cublas(), cublas_workspace_.data(), kCublasWorkspaceBytes));
}

void* StreamContext::bytes(VendorScratch purpose, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  auto& memory = scratch_[static_cast<int>(purpose)];
  if (memory.empty() || memory.back().size() < bytes) memory.emplace_back(device_, bytes);
  return memory.back().data();
}

float* StreamContext::floats(VendorScratch purpose, std::size_t size) {
  return static_cast<float*>(bytes(purpose, size * sizeof(float)));
}

const float* StreamContext::aligned(VendorScratch purpose, const float* from, std::size_t size) {
  if (is_aligned(from)) return from;
  float* copy = floats(purpose, size);
  LOCKSTEP_CUDA(cudaMemcpyAsync(copy, from, size * sizeof(float), cudaMemcpyDeviceToDevice, stream_));
  return copy;
}

// Statuses that blame the installation or the memory, with advice; all others are our fault.

namespace {

/// Advice where the library, the GPU or its memory is the cause; null where it should not have failed.
const char* fix_of(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
      return "install all libraries of one version of cuDNN (libcudnn*.so) in one folder";
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH:
      return "install a version of cuDNN made for this GPU and its driver";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "use a smaller {global_batch} or a GPU with more free memory";
    default:
      return nullptr;
  }
}

const char* fix_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "install a version of cuBLAS made for this GPU and its driver";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "use a smaller {global_batch} or a GPU with more free memory";
    default:
      return nullptr;
  }
}

/// cuDNN knows more about its last failure than a status says, over several lines.
std::string describe(cudnnStatus_t status) {
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  std::string text = detail;
  text = text.substr(0, text.find('\n'));
  return cudnnGetErrorString(status) + (text.empty() ? std::string() : " (" + text + ")");
}

std::string describe(cublasStatus_t status) {
  return cublasGetStatusString(status);
}

}  // namespace

template <typename Status>
void check(Status status, const VendorCall& site) {
  if (status == Status{}) return;
  const std::string failure =
      fmt::format("{} failed: {} at {}:{}", site.call, describe(status), site.file, site.line);
  if (const char* fix = fix_of(status))
    throw DeviceError(fmt::format("{}; {}, or use {}native", failure, advice(fix), spelling().kernels));
  throw InternalError(fmt::format("internal error: {}; please report this", failure));
}
template void check(cudnnStatus_t, const VendorCall&);
template void check(cublasStatus_t, const VendorCall&);

template <typename Status>
void log_failure(Status status, const VendorCall& site) noexcept {
  if (status == Status{}) return;
  std::fprintf(stderr, "lockstep: warning: %s failed with status %d at %s:%d\n", site.call,
               static_cast<int>(status), site.file, site.line);
}
template void log_failure(cudnnStatus_t, const VendorCall&) noexcept;
template void log_failure(cublasStatus_t, const VendorCall&) noexcept;

}  // namespace lockstep::vendor
