// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/kernels/vendor/fake_libraries/cudnn_objects.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace {

constexpr std::size_t kWorkspaceBytes = 1024;

/// The sizes that belong together, and where the three tensors lie.
struct Problem {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct convolution;

  bool fits() const {
    const auto out = [](int size, int padding, int window, int dilation, int stride) {
      return (size + 2 * padding - (window - 1) * dilation - 1) / stride + 1;
    };
    const cudnnConvolutionStruct& c = convolution;
    return c.mode == CUDNN_CROSS_CORRELATION && c.math == CUDNN_FMA_MATH && x.n == y.n &&
           x.c == w.c * c.groups && y.c == w.n && y.c % c.groups == 0 &&
           y.h == out(x.h, c.padding_h, w.h, c.dilation_h, c.stride_h) &&
           y.w == out(x.w, c.padding_w, w.w, c.dilation_w, c.stride_w);
  }

  /// Calls f(x index, w index, y index) for each product.
  template <typename F>
  void for_each_product(const F& f) const {
    for (int n = 0; n < y.n; ++n)
      for (int k = 0; k < y.c; ++k)
        for (int p = 0; p < y.h; ++p)
          for (int q = 0; q < y.w; ++q) for_each_tap(n, k, p, q, f);
  }

  template <typename F>
  void for_each_tap(int n, int k, int p, int q, const F& f) const {
    const int first_channel = k / (y.c / convolution.groups) * w.c;
    for (int c = 0; c < w.c; ++c)
      for (int r = 0; r < w.h; ++r)
        for (int s = 0; s < w.w; ++s) {
          const int row = p * convolution.stride_h - convolution.padding_h + r * convolution.dilation_h;
          const int column = q * convolution.stride_w - convolution.padding_w + s * convolution.dilation_w;
          if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
          f(x.at(n, first_channel + c, row, column), w.at(k, c, r, s), y.at(n, k, p, q));
        }
  }
};

/// Numbers of a product in the order in which for_each_product() gives their places.
enum ProductOperand { kX, kW, kY };

/// Queues c = the sums, in double, of products of a and b, which are where the template says.
template <ProductOperand kA, ProductOperand kB, ProductOperand kC>
cudnnStatus_t queue_sums(cudnnHandle_t handle, const Problem& problem, const void* a, const void* b, void* c,
                         std::size_t size, void* workspace, std::size_t workspace_bytes) {
  if (!problem.fits() || workspace_bytes < kWorkspaceBytes) return CUDNN_STATUS_BAD_PARAM;
  if (!is_aligned(a) || !is_aligned(b) || !is_aligned(c)) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
  lockstep::emulation::queue(handle->stream, [=] {
    std::memset(workspace, 0xFF, workspace_bytes);
    std::vector<double> sums(size);
    problem.for_each_product([&](auto... places) {
      const std::size_t at[] = {places...};
      sums[at[kC]] +=
          static_cast<double>(static_cast<const float*>(a)[at[kA]]) * static_cast<const float*>(b)[at[kB]];
    });
    std::transform(sums.begin(), sums.end(), static_cast<float*>(c),
                   [](double sum) { return static_cast<float>(sum); });
  });
  return CUDNN_STATUS_SUCCESS;
}

std::size_t size_of(const cudnnTensorStruct& tensor) {
  return tensor.at(tensor.n, 0, 0, 0);
}

/// A ranking with everything that must not be taken in front of `good`; `fast` is nondeterministic.
template <typename Algorithm>
cudnnStatus_t rank(Algorithm fast, Algorithm good, int wanted, int* count,
                   FakeCudnnPerformance<Algorithm>* ranked) {
  const FakeCudnnPerformance<Algorithm> all[] = {
      {good, CUDNN_STATUS_SUCCESS, 1, 0, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH},
      {fast, CUDNN_STATUS_NOT_SUPPORTED, 2, 0, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH},
      {fast, CUDNN_STATUS_SUCCESS, 3, kWorkspaceBytes, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH},
      {good, CUDNN_STATUS_SUCCESS, 4, kWorkspaceBytes, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH},
  };
  *count = std::min(wanted, static_cast<int>(std::size(all)));
  std::copy(all, all + *count, ranked);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

#define FAKE_CUDNN_RANKINGS(NAME, ALGORITHM, FAST, GOOD, A, B, C)                                           \
  cudnnStatus_t cudnnGetConvolution##NAME##Algorithm_v7(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t,  \
                                                        C, int wanted, int* count,                          \
                                                        FakeCudnnPerformance<ALGORITHM>* ranked) {          \
    return rank(FAST, GOOD, wanted, count, ranked);                                                         \
  }                                                                                                         \
  cudnnStatus_t cudnnFindConvolution##NAME##Algorithm(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, C, \
                                                      int wanted, int* count,                               \
                                                      FakeCudnnPerformance<ALGORITHM>* ranked) {            \
    return rank(FAST, GOOD, wanted, count, ranked);                                                         \
  }                                                                                                         \
  cudnnStatus_t cudnnGetConvolution##NAME##WorkspaceSize(cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, \
                                                         C, ALGORITHM, std::size_t* bytes) {                \
    *bytes = kWorkspaceBytes;                                                                               \
    return CUDNN_STATUS_SUCCESS;                                                                            \
  }

FAKE_CUDNN_RANKINGS(Forward, cudnnConvolutionFwdAlgo_t, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, cudnnTensorDescriptor_t,
                    cudnnFilterDescriptor_t, cudnnTensorDescriptor_t)
FAKE_CUDNN_RANKINGS(BackwardData, cudnnConvolutionBwdDataAlgo_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                    cudnnTensorDescriptor_t)
FAKE_CUDNN_RANKINGS(BackwardFilter, cudnnConvolutionBwdFilterAlgo_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                    cudnnFilterDescriptor_t)

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* /*alpha*/,
                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                      cudnnFilterDescriptor_t w_desc, const void* w,
                                      cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t /*algorithm*/, void* workspace,
                                      std::size_t workspace_bytes, const void* /*beta*/,
                                      cudnnTensorDescriptor_t y_desc, void* y) {
  return queue_sums<kX, kW, kY>(handle, {*x_desc, *y_desc, *w_desc, *convolution}, x, w, y, size_of(*y_desc),
                                workspace, workspace_bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* /*alpha*/,
                                           cudnnFilterDescriptor_t w_desc, const void* w,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t /*algorithm*/, void* workspace,
                                           std::size_t workspace_bytes, const void* /*beta*/,
                                           cudnnTensorDescriptor_t dx_desc, void* dx) {
  return queue_sums<kW, kY, kX>(handle, {*dx_desc, *dy_desc, *w_desc, *convolution}, w, dy, dx,
                                size_of(*dx_desc), workspace, workspace_bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* /*alpha*/,
                                             cudnnTensorDescriptor_t x_desc, const void* x,
                                             cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t /*algorithm*/, void* workspace,
                                             std::size_t workspace_bytes, const void* /*beta*/,
                                             cudnnFilterDescriptor_t dw_desc, void* dw) {
  return queue_sums<kX, kY, kW>(handle, {*x_desc, *dy_desc, *dw_desc, *convolution}, x, dy, dw,
                                size_of(*dw_desc), workspace, workspace_bytes);
}
