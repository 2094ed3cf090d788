// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Handles bound to the stream, and scratch memory that only grows.
#include "kernels/vendor/stream_context.hpp"

#include "kernels/cuda/error.hpp"

#include <cstdint>

namespace lockstep::vendor {
namespace {

constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS wants on an H100

CudnnHandle make_cudnn(cudaStream_t stream) {
  CudnnHandle handle = create_cudnn();
  LOCKSTEP_CUDNN(cudnnSetStream(handle.get(), stream));
  return handle;
}

/// In its default mode cuBLAS computes fp32 products in fp32, without atomic additions.
CublasHandle make_cublas(cudaStream_t stream, void* workspace) {
  CublasHandle owner = create_cublas();
  cublasHandle_t handle = owner.get();
  LOCKSTEP_CUBLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  LOCKSTEP_CUBLAS(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
  LOCKSTEP_CUBLAS(cublasSetStream(handle, stream));  // which takes an earlier workspace away
  LOCKSTEP_CUBLAS(cublasSetWorkspace(handle, workspace, kCublasWorkspaceBytes));
  return owner;
}

}  // namespace

bool is_aligned(const void* memory) {
  constexpr std::uintptr_t kAlignment = 16;
  return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
}

StreamContext::StreamContext(Device& device, cudaStream_t stream)
    : device_(device),
      stream_(stream),
      cublas_workspace_(device, kCublasWorkspaceBytes),
      cudnn_(make_cudnn(stream)),
      cublas_(make_cublas(stream, cublas_workspace_.data())) {}

void* StreamContext::bytes(Scratch purpose, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  auto& memory = scratch_[static_cast<int>(purpose)];
  if (memory.empty() || memory.back().size() < bytes) memory.emplace_back(device_, bytes);
  return memory.back().data();
}

float* StreamContext::floats(Scratch purpose, std::size_t size) {
  return static_cast<float*>(bytes(purpose, size * sizeof(float)));
}

const float* StreamContext::aligned(Scratch purpose, const float* from, std::size_t size) {
  if (is_aligned(from)) return from;
  float* copy = floats(purpose, size);
  LOCKSTEP_CUDA(cudaMemcpyAsync(copy, from, size * sizeof(float), cudaMemcpyDeviceToDevice, stream_));
  return copy;
}

}  // namespace lockstep::vendor
