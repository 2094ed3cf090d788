// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/kernels/vendor/fake_libraries/cudnn_objects.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace {

/// Calls f(x index, is first) for the taps of a window that lie inside the image.
template <typename F>
void for_each_tap(const cudnnPoolingStruct& pool, const cudnnTensorStruct& x, int n, int c, int p, int q,
                  const F& f) {
  for (int r = 0; r < pool.height; ++r)
    for (int s = 0; s < pool.width; ++s) {
      const int row = p * pool.stride_h - pool.padding_h + r;
      const int column = q * pool.stride_w - pool.padding_w + s;
      if (row >= 0 && row < x.h && column >= 0 && column < x.w) f(x.at(n, c, row, column));
    }
}

template <typename F>
void for_each_element(const cudnnTensorStruct& tensor, const F& f) {
  for (int n = 0; n < tensor.n; ++n)
    for (int c = 0; c < tensor.c; ++c)
      for (int h = 0; h < tensor.h; ++h)
        for (int w = 0; w < tensor.w; ++w) f(n, c, h, w);
}

float pooled(const cudnnPoolingStruct& pool, const cudnnTensorStruct& shape, const float* x, int n, int c,
             int p, int q) {
  float best = -std::numeric_limits<float>::infinity();
  double sum = 0;
  for_each_tap(pool, shape, n, c, p, q, [&](std::size_t i) {
    best = std::max(best, x[i]);
    sum += x[i];
  });
  return pool.mode == CUDNN_POOLING_MAX ? best : static_cast<float>(sum / (pool.height * pool.width));
}

}  // namespace

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* /*alpha*/, cudnnTensorDescriptor_t a_desc,
                             const void* a, const void* /*beta*/, cudnnTensorDescriptor_t c_desc, void* c) {
  if (!(*a_desc == cudnnTensorStruct{1, c_desc->c, 1, 1})) return CUDNN_STATUS_BAD_PARAM;
  if (!is_aligned(a) || !is_aligned(c)) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
  lockstep::emulation::queue(handle->stream, [=, shape = *c_desc] {
    for_each_element(shape, [&](int i, int j, int k, int l) {
      static_cast<float*>(c)[shape.at(i, j, k, l)] += static_cast<const float*>(a)[j];
    });
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* /*alpha*/,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* /*beta*/, cudnnTensorDescriptor_t db_desc, void* db) {
  if (!(*db_desc == cudnnTensorStruct{1, dy_desc->c, 1, 1})) return CUDNN_STATUS_BAD_PARAM;
  if (!is_aligned(dy) || !is_aligned(db)) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
  lockstep::emulation::queue(handle->stream, [=, shape = *dy_desc] {
    std::vector<double> sums(static_cast<std::size_t>(shape.c));
    for_each_element(shape, [&](int i, int j, int k, int l) {
      sums[static_cast<std::size_t>(j)] += static_cast<const float*>(dy)[shape.at(i, j, k, l)];
    });
    std::transform(sums.begin(), sums.end(), static_cast<float*>(db),
                   [](double sum) { return static_cast<float>(sum); });
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pool, const void* /*alpha*/,
                                  cudnnTensorDescriptor_t x_desc, const void* x, const void* /*beta*/,
                                  cudnnTensorDescriptor_t y_desc, void* y) {
  lockstep::emulation::queue(handle->stream, [=, shape = *pool, in = *x_desc, out = *y_desc] {
    for_each_element(out, [&](int n, int c, int p, int q) {
      static_cast<float*>(y)[out.at(n, c, p, q)] =
          pooled(shape, in, static_cast<const float*>(x), n, c, p, q);
    });
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pool, const void* /*alpha*/,
                                   cudnnTensorDescriptor_t y_desc, const void* y,
                                   cudnnTensorDescriptor_t /*dy_desc*/, const void* dy,
                                   cudnnTensorDescriptor_t x_desc, const void* x, const void* /*beta*/,
                                   cudnnTensorDescriptor_t /*dx_desc*/, void* dx) {
  if (x == nullptr || y == nullptr) return CUDNN_STATUS_BAD_PARAM;
  lockstep::emulation::queue(handle->stream, [=, shape = *pool, in = *x_desc, out = *y_desc] {
    auto* gradient = static_cast<float*>(dx);
    std::vector<float> sums(in.at(in.n, 0, 0, 0));
    for_each_element(out, [&](int n, int c, int p, int q) {
      const std::size_t to = out.at(n, c, p, q);
      const float part = static_cast<const float*>(dy)[to];
      bool taken = false;
      for_each_tap(shape, in, n, c, p, q, [&](std::size_t i) {
        if (shape.mode != CUDNN_POOLING_MAX) {
          sums[i] += part / static_cast<float>(shape.height * shape.width);
        } else if (!taken && static_cast<const float*>(x)[i] == static_cast<const float*>(y)[to]) {
          sums[i] += part;
          taken = true;
        }
      });
    });
    std::copy(sums.begin(), sums.end(), gradient);
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t /*algorithm*/,
                                  cudnnSoftmaxMode_t /*mode*/, const void* /*alpha*/,
                                  cudnnTensorDescriptor_t x_desc, const void* x, const void* /*beta*/,
                                  cudnnTensorDescriptor_t /*y_desc*/, void* y) {
  lockstep::emulation::queue(handle->stream, [=, shape = *x_desc] {
    for (int n = 0; n < shape.n; ++n) {
      const float* from = static_cast<const float*>(x) + shape.at(n, 0, 0, 0);
      float* to = static_cast<float*>(y) + shape.at(n, 0, 0, 0);
      const double peak = *std::max_element(from, from + shape.c);
      double sum = 0;
      for (int c = 0; c < shape.c; ++c) sum += std::exp(from[c] - peak);
      for (int c = 0; c < shape.c; ++c) to[c] = static_cast<float>(std::exp(from[c] - peak) / sum);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED" : "CUDNN_STATUS_OTHER";
}

void cudnnGetLastErrorString(char* message, std::size_t max_size) {
  std::snprintf(message, max_size, "first line of the detail\nsecond line");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

#define FAKE_CUDNN_MADE(NAME)                                                          \
  cudnnStatus_t cudnnCreate##NAME##Descriptor(cudnn##NAME##Descriptor_t* made) {       \
    *made = new cudnn##NAME##Struct;                                                   \
    return CUDNN_STATUS_SUCCESS;                                                       \
  }                                                                                    \
  cudnnStatus_t cudnnDestroy##NAME##Descriptor(cudnn##NAME##Descriptor_t descriptor) { \
    delete descriptor;                                                                 \
    return CUDNN_STATUS_SUCCESS;                                                       \
  }

FAKE_CUDNN_MADE(Tensor)
FAKE_CUDNN_MADE(Filter)
FAKE_CUDNN_MADE(Convolution)
FAKE_CUDNN_MADE(Pooling)

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t /*format*/,
                                         cudnnDataType_t /*type*/, int n, int c, int h, int w) {
  *descriptor = {n, c, h, w};
  return n > 0 && c > 0 && h > 0 && w > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t /*type*/,
                                         cudnnTensorFormat_t /*format*/, int k, int c, int h, int w) {
  descriptor->n = k, descriptor->c = c, descriptor->h = h, descriptor->w = w;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h, int pad_w,
                                              int u, int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t /*type*/) {
  *descriptor = {pad_h, pad_w, u, v, dilation_h, dilation_w, mode, CUDNN_DEFAULT_MATH};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  descriptor->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t type) {
  descriptor->math = type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t /*nan*/, int window_height, int window_width,
                                          int vertical_padding, int horizontal_padding, int vertical_stride,
                                          int horizontal_stride) {
  *descriptor = {mode,
                 window_height,
                 window_width,
                 vertical_padding,
                 horizontal_padding,
                 vertical_stride,
                 horizontal_stride};
  return CUDNN_STATUS_SUCCESS;
}
