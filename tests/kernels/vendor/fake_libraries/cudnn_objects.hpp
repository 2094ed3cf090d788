// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Objects of the fake cuDNN: targets of its handles and descriptors.
#pragma once

#include "kernels/emulation/stream.hpp"

#include <cudnn.h>

#include <cstdint>

/// Stricter than cuDNN, whose kernels may load 16 bytes at once, or not.
inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  int n = 0, c = 0, h = 0, w = 0;
  std::size_t at(int i, int j, int k, int l) const { return ((std::size_t{1} * i * c + j) * h + k) * w + l; }
  friend bool operator==(const cudnnTensorStruct&, const cudnnTensorStruct&) = default;
};

struct cudnnFilterStruct : cudnnTensorStruct {};

struct cudnnConvolutionStruct {
  int padding_h = 0, padding_w = 0, stride_h = 0, stride_w = 0, dilation_h = 1, dilation_w = 1;
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
};

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  int height = 0, width = 0, padding_h = 0, padding_w = 0, stride_h = 0, stride_w = 0;
};
