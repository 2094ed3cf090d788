// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What one stream needs of the libraries: a handle of each, and memory of its own.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/vendor/owners.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

namespace lockstep::vendor {

/// What scratch memory is for. Each purpose has its own.
enum class Scratch { kWorkspace, kBeforeEpilogue, kWeightGradient, kBiasGradient, kX, kW, kDy, kCount };

/// Both libraries take the factors of a result and of what it replaces by their addresses.
inline constexpr float kOne = 1, kZero = 0;

/// Whether cuDNN takes it: its kernels may load 16 bytes at once.
bool is_aligned(const void* memory);

/// A handle's workspace may serve one stream at a time, and cuBLAS gives the same bits only under that
/// condition, so each stream has handles of its own. Not thread-safe.
class StreamContext {
 public:
  /// Allocates: not while the stream captures. Borrows the device.
  StreamContext(Device& device, cudaStream_t stream);

  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasHandle_t cublas() const { return cublas_.get(); }

  /// At least `bytes` of device memory, or null for 0. Contents unspecified, and others' after the next call
  /// with this purpose. May allocate, then not while the stream captures; addresses that a captured graph
  /// has stay valid as long as this object.
  void* bytes(Scratch purpose, std::size_t bytes);
  float* floats(Scratch purpose, std::size_t size);

  /// `from` itself if it is_aligned(), or a copy of its `size` numbers: parameters and grains are only
  /// aligned to 4 bytes. None of Net's and LeNet's is copied.
  const float* aligned(Scratch purpose, const float* from, std::size_t size);

 private:
  using Memory = DeviceBuffer<std::byte>;

  Device& device_;
  cudaStream_t stream_;
  Memory cublas_workspace_;
  CudnnHandle cudnn_;
  CublasHandle cublas_;
  /// The newest of each purpose is the largest; graphs may use older ones.
  std::vector<Memory> scratch_[static_cast<int>(Scratch::kCount)];
};

}  // namespace lockstep::vendor
