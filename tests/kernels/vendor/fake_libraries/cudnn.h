// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What kernels/vendor uses of cuDNN 9, with its names and values, for the emulator: naive loops that are as
/// strict as the manual about streams, workspaces and alignment.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
  CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
  CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
  CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
  CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
};
const char* cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char* message, std::size_t max_size);

struct cudnnContext;
using cudnnHandle_t = cudnnContext*;
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);

// Descriptors. Sizes are n, c, h, w.
enum cudnnDataType_t { CUDNN_DATA_FLOAT = 0 };
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW = 0 };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum cudnnMathType_t { CUDNN_DEFAULT_MATH = 0, CUDNN_FMA_MATH = 3 };
enum cudnnNanPropagation_t { CUDNN_PROPAGATE_NAN = 1 };
enum cudnnPoolingMode_t { CUDNN_POOLING_MAX = 0, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1 };

#define FAKE_CUDNN_DESCRIPTOR(NAME)                                             \
  struct cudnn##NAME##Struct;                                                   \
  using cudnn##NAME##Descriptor_t = cudnn##NAME##Struct*;                       \
  cudnnStatus_t cudnnCreate##NAME##Descriptor(cudnn##NAME##Descriptor_t* made); \
  cudnnStatus_t cudnnDestroy##NAME##Descriptor(cudnn##NAME##Descriptor_t descriptor)

FAKE_CUDNN_DESCRIPTOR(Tensor);
FAKE_CUDNN_DESCRIPTOR(Filter);
FAKE_CUDNN_DESCRIPTOR(Convolution);
FAKE_CUDNN_DESCRIPTOR(Pooling);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h, int pad_w,
                                              int u, int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t type);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t type);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups);
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_height, int window_width,
                                          int vertical_padding, int horizontal_padding, int vertical_stride,
                                          int horizontal_stride);

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t a_desc,
                             const void* a, const void* beta, cudnnTensorDescriptor_t c_desc, void* c);
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy, const void* beta,
                                           cudnnTensorDescriptor_t db_desc, void* db);

// Convolutions. Algorithms other than the two (three) that add up plain products only appear in rankings.
enum cudnnDeterminism_t { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 };
enum cudnnConvolutionFwdAlgo_t {
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
  CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
  CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
  CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8,
};
enum cudnnConvolutionBwdDataAlgo_t {
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6,
};
enum cudnnConvolutionBwdFilterAlgo_t {
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7,
};
template <typename Algorithm>
struct FakeCudnnPerformance {
  Algorithm algo;
  cudnnStatus_t status;
  float time;
  std::size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
};
using cudnnConvolutionFwdAlgoPerf_t = FakeCudnnPerformance<cudnnConvolutionFwdAlgo_t>;
using cudnnConvolutionBwdDataAlgoPerf_t = FakeCudnnPerformance<cudnnConvolutionBwdDataAlgo_t>;
using cudnnConvolutionBwdFilterAlgoPerf_t = FakeCudnnPerformance<cudnnConvolutionBwdFilterAlgo_t>;

/// The functions of one direction: c from a and b.
#define FAKE_CUDNN_DIRECTION(NAME, ALGORITHM, RUN, A, B, C)                                                 \
  cudnnStatus_t cudnnGetConvolution##NAME##Algorithm_v7(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t,  \
                                                        C, int wanted, int* count,                          \
                                                        FakeCudnnPerformance<ALGORITHM>* ranked);           \
  cudnnStatus_t cudnnFindConvolution##NAME##Algorithm(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, C, \
                                                      int wanted, int* count,                               \
                                                      FakeCudnnPerformance<ALGORITHM>* ranked);             \
  cudnnStatus_t cudnnGetConvolution##NAME##WorkspaceSize(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, \
                                                         C, ALGORITHM, std::size_t* bytes);                 \
  cudnnStatus_t RUN(cudnnHandle_t, const void* alpha, A, const void* a, B, const void* b,                   \
                    cudnnConvolutionDescriptor_t, ALGORITHM, void* workspace, std::size_t workspace_bytes,  \
                    const void* beta, C, void* c)

FAKE_CUDNN_DIRECTION(Forward, cudnnConvolutionFwdAlgo_t, cudnnConvolutionForward, cudnnTensorDescriptor_t,
                     cudnnFilterDescriptor_t, cudnnTensorDescriptor_t);
FAKE_CUDNN_DIRECTION(BackwardData, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBackwardData,
                     cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t);
FAKE_CUDNN_DIRECTION(BackwardFilter, cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBackwardFilter,
                     cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t);

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pool, const void* alpha,
                                  cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_desc, void* y);
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pool, const void* alpha,
                                   cudnnTensorDescriptor_t y_desc, const void* y,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dx_desc, void* dx);

enum cudnnSoftmaxAlgorithm_t { CUDNN_SOFTMAX_ACCURATE = 1 };
enum cudnnSoftmaxMode_t { CUDNN_SOFTMAX_MODE_CHANNEL = 1 };
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha, cudnnTensorDescriptor_t x_desc,
                                  const void* x, const void* beta, cudnnTensorDescriptor_t y_desc, void* y);
