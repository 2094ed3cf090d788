// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// cuDNN's and cuBLAS's handles and descriptors, each with an owner, and their errors as exceptions.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/shapes.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

// The check around every call of cuDNN and cuBLAS.

namespace lockstep::vendor {

/// A call, as the source has it.
struct VendorCall {
  const char* call;
  const char* file;
  int line;
};

/// @tparam Status         cudnnStatus_t or cublasStatus_t, both of which are 0 for success
/// @throws DeviceError    if the library, the GPU or its memory is the cause, with what to do about it
/// @throws InternalError  for any other failure
template <typename Status>
void check(Status status, const VendorCall& site);

/// For destructors: a failure is one line on standard error.
template <typename Status>
void log_failure(Status status, const VendorCall& site) noexcept;

#define LOCKSTEP_VENDOR_CALL(...)    \
  ::lockstep::vendor::VendorCall {   \
#__VA_ARGS__, __FILE__, __LINE__ \
  }
#define LOCKSTEP_CUDNN(...) ::lockstep::vendor::check(__VA_ARGS__, LOCKSTEP_VENDOR_CALL(__VA_ARGS__))
#define LOCKSTEP_CUBLAS(...) ::lockstep::vendor::check(__VA_ARGS__, LOCKSTEP_VENDOR_CALL(__VA_ARGS__))
#define LOCKSTEP_VENDOR_NOEXCEPT(...) \
  ::lockstep::vendor::log_failure(__VA_ARGS__, LOCKSTEP_VENDOR_CALL(__VA_ARGS__))

// Owners of what cuDNN and cuBLAS create, and makers of cuDNN's descriptors: fp32, [sample][channel][row]
// [column].

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

// Needs of one stream: a handle of each library, and separate memory.

/// Purposes of scratch memory. Each has separate memory.
enum class VendorScratch { kWorkspace, kBeforeEpilogue, kWeightGradient, kBiasGradient, kX, kW, kDy, kCount };

/// Factors of a result and of what it replaces; both libraries want their addresses.
inline constexpr float kOne = 1, kZero = 0;

/// True if cuDNN accepts it: its kernels may load 16 bytes at once.
bool is_aligned(const void* memory);

/// The handles of one stream. A handle's workspace may serve one stream at a time, and cuBLAS gives the same bits only
/// under that condition. Not thread-safe.
class StreamContext {
 public:
  /// Allocates: not while the stream captures. Borrows the device.
  StreamContext(Device& device, cudaStream_t stream);

  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasHandle_t cublas() const { return cublas_.get(); }

  /// At least `bytes` of device memory, or null for 0. Contents unspecified, and others' after the next call
  /// with this purpose. May allocate, then not while the stream captures; addresses that a captured graph
  /// has stay valid as long as this object.
  void* bytes(VendorScratch purpose, std::size_t bytes);
  float* floats(VendorScratch purpose, std::size_t size);

  /// `from` itself if it is_aligned(), or a copy of its `size` numbers. Parameters and grains are only
  /// aligned to 4 bytes. None of Net's and LeNet's is copied.
  const float* aligned(VendorScratch purpose, const float* from, std::size_t size);

 private:
  using Memory = DeviceBuffer<std::byte>;

  Device& device_;
  cudaStream_t stream_;
  Memory cublas_workspace_;
  CudnnHandle cudnn_;
  CublasHandle cublas_;
  /// The newest of each purpose is the largest; graphs may use older ones.
  std::vector<Memory> scratch_[static_cast<int>(VendorScratch::kCount)];
};

}  // namespace lockstep::vendor
