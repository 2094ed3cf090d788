// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Maps from shapes to layers and from streams to contexts, filled as they are asked for.
#include "kernels/vendor/library.hpp"

#include "kernels/cuda/error.hpp"

namespace lockstep::vendor {

Library::Library(Device& device, VendorAlgorithms algorithms) : device_(device), algorithms_(algorithms) {
  LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
  const CudnnHandle cudnn = create_cudnn();
  const CublasHandle cublas = create_cublas();
}

StreamContext& Library::on(Stream& stream) {
  cudaStream_t handle = handle_of(stream);
  return contexts_.try_emplace(handle, device_, handle).first->second;
}

cudaStream_t Library::handle_of(Stream& stream) {
  LOCKSTEP_CUDA(cudaSetDevice(device_.properties().index));
  return static_cast<cudaStream_t>(stream.native_handle());
}

Conv2d& Library::layer(const Conv2dShape& shape) {
  const auto& [batch, channels, height, width, out, kernel_height, kernel_width, stride, padding] = shape;
  const std::array key = {batch, channels, height, width, out, kernel_height, kernel_width, stride, padding};
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

}  // namespace lockstep::vendor
