// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers in cuDNN's and cuBLAS's terms, made at their first use and kept, and a context for each
/// stream.
#pragma once

#include "kernels/vendor/handles.hpp"
#include "kernels/vendor/vendor.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace lockstep::vendor {

// A pool of one shape by cuDNN.

/// Calls are queued on the context's stream.
class Pool {
 public:
  Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);
  void forward(StreamContext& context, const float* x, float* y) const;
  /// @param x, y  of the forward call. An average pool does not read them: any memory of their size will do.
  void backward(StreamContext& context, const float* x, const float* y, const float* dy, float* dx) const;

 private:
  TensorDescriptor x_, y_;
  PoolingDescriptor pool_;
};

// The bias of a convolution or linear layer by cuDNN.

class ChannelBias {
 public:
  ChannelBias(int batch, const ImageShape& output);
  /// y[n][k][p][q] += b[k]; b is_aligned()
  void add(StreamContext& context, const float* b, float* y) const;
  /// db[k] = sum of dy[n][k][p][q], overwritten, always in the same order.
  void gradient(StreamContext& context, const float* dy, float* db) const;

 private:
  std::size_t y_size_;
  TensorDescriptor y_, b_;
};

// A linear layer of one shape by cuBLAS.

/// x [N,I]  w [O,I]  y [N,O]. Calls are queued on the context's stream.
class Linear {
 public:
  explicit Linear(const LinearShape& shape);

  std::size_t weight_size() const { return shape_.weight_size(); }
  int batch() const { return shape_.batch; }
  ImageShape input() const { return {shape_.in_features, 1, 1}; }
  ImageShape output() const { return {shape_.out_features, 1, 1}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = w x for each sample
  void forward(StreamContext& context, const float* x, const float* w, float* y) const;
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const;
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const;

 private:
  LinearShape shape_;
  ChannelBias bias_;
};

// The cuDNN algorithm of a convolution. The three directions have the same functions under
// different names: here they are one, with the description of the direction as parameter.

/// y from x and w.
struct ForwardApi {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Ranked = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  /// Sums of products in the formula's order; the first one accepts every shape.
  static constexpr Algorithm kPlain[] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                         CUDNN_CONVOLUTION_FWD_ALGO_GEMM};
  static constexpr auto rank = cudnnGetConvolutionForwardAlgorithm_v7;
  static constexpr auto measure = cudnnFindConvolutionForwardAlgorithm;
  static constexpr auto workspace = cudnnGetConvolutionForwardWorkspaceSize;
  static constexpr auto run = cudnnConvolutionForward;
};

/// dx from w and dy.
struct BackwardDataApi {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Ranked = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  static constexpr Algorithm kPlain[] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1};
  static constexpr auto rank = cudnnGetConvolutionBackwardDataAlgorithm_v7;
  static constexpr auto measure = cudnnFindConvolutionBackwardDataAlgorithm;
  static constexpr auto workspace = cudnnGetConvolutionBackwardDataWorkspaceSize;
  static constexpr auto run = cudnnConvolutionBackwardData;
};

/// dw from x and dy.
struct BackwardWeightsApi {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Ranked = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  static constexpr Algorithm kPlain[] = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1};
  static constexpr auto rank = cudnnGetConvolutionBackwardFilterAlgorithm_v7;
  static constexpr auto measure = cudnnFindConvolutionBackwardFilterAlgorithm;
  static constexpr auto workspace = cudnnGetConvolutionBackwardFilterWorkspaceSize;
  static constexpr auto run = cudnnConvolutionBackwardFilter;
};

template <typename Api>
struct Conv2dAlgorithm {
  typename Api::Algorithm algorithm;
  std::size_t workspace_bytes = 0;
};

inline constexpr std::size_t kMaxConv2dWorkspace = std::size_t{256} << 20;

template <typename Api>
bool is_wanted(const typename Api::Ranked& ranked, VendorAlgorithms algorithms) {
  if (ranked.status != CUDNN_STATUS_SUCCESS || ranked.memory > kMaxConv2dWorkspace) return false;
  if (algorithms == VendorAlgorithms::kFastest) return true;
  const auto* end = std::end(Api::kPlain);
  return ranked.determinism == CUDNN_DETERMINISTIC && std::find(Api::kPlain, end, ranked.algo) != end;
}

/// All algorithms, the one that promises most (or that was fastest) first. cuDNN also ranks what they would
/// do with TF32, which the convolution's description rules out: that comes last.
template <typename Api, typename A, typename B, typename C>
std::vector<typename Api::Ranked> ranking(cudnnHandle_t handle, VendorAlgorithms algorithms, A a, B b,
                                          cudnnConvolutionDescriptor_t convolution, C c) {
  constexpr int kModes = 2;  // with and without TF32
  std::vector<typename Api::Ranked> ranked(kModes * Api::kAlgorithms);
  const auto rank = algorithms == VendorAlgorithms::kFastest ? Api::measure : Api::rank;
  int count = 0;
  LOCKSTEP_CUDNN(rank(handle, a, b, convolution, c, static_cast<int>(ranked.size()), &count, ranked.data()));
  ranked.resize(static_cast<std::size_t>(count));
  std::stable_partition(ranked.begin(), ranked.end(),
                        [](const auto& one) { return one.mathType == CUDNN_FMA_MATH; });
  return ranked;
}

/// The algorithm for the direction's operation on a, b and c. Not while the handle's stream captures.
template <typename Api, typename A, typename B, typename C>
Conv2dAlgorithm<Api> choose_algorithm(cudnnHandle_t handle, VendorAlgorithms algorithms, A a, B b,
                                      cudnnConvolutionDescriptor_t convolution, C c) {
  Conv2dAlgorithm<Api> chosen{Api::kPlain[0]};
  for (const auto& ranked : ranking<Api>(handle, algorithms, a, b, convolution, c)) {
    if (!is_wanted<Api>(ranked, algorithms)) continue;
    chosen.algorithm = ranked.algo;
    const auto status =
        Api::workspace(handle, a, b, convolution, c, chosen.algorithm, &chosen.workspace_bytes);
    if (status == CUDNN_STATUS_SUCCESS && chosen.workspace_bytes <= kMaxConv2dWorkspace) return chosen;
  }
  chosen.algorithm = Api::kPlain[0];
  LOCKSTEP_CUDNN(Api::workspace(handle, a, b, convolution, c, chosen.algorithm, &chosen.workspace_bytes));
  return chosen;
}

// A convolution of one shape by cuDNN.

/// Calls are queued on the context's stream; the first one in each direction chooses an algorithm.
class Conv2d {
 public:
  Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms);

  std::size_t weight_size() const { return shape_.weight_size(); }
  int batch() const { return shape_.batch; }
  ImageShape input() const { return {shape_.in_channels, shape_.in_height, shape_.in_width}; }
  ImageShape output() const { return {shape_.out_channels, shape_.out_height(), shape_.out_width()}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = conv(x, w)
  void forward(StreamContext& context, const float* x, const float* w, float* y);
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx);
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw);

 private:
  Conv2dShape shape_;
  VendorAlgorithms algorithms_;
  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  ChannelBias bias_;
  std::optional<Conv2dAlgorithm<ForwardApi>> forward_;
  std::optional<Conv2dAlgorithm<BackwardDataApi>> backward_data_;
  std::optional<Conv2dAlgorithm<BackwardWeightsApi>> backward_weights_;
};

class Library {
 public:
  /// Borrows the device.
  /// @throws DeviceError if the libraries cannot be used on it
  Library(Device& device, VendorAlgorithms algorithms);

  /// The context that the stream's work is queued with. Makes the device the calling thread's current one.
  StreamContext& on(Stream& stream);
  /// The stream for work that needs nothing of the libraries: no context is made.
  cudaStream_t handle_of(Stream& stream);

  Conv2d& layer(const Conv2dShape& shape);
  Linear& layer(const LinearShape& shape);
  Pool& pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);

 private:
  Device& device_;
  VendorAlgorithms algorithms_;
  std::map<cudaStream_t, StreamContext> contexts_;
  std::map<std::array<int, 11>, Conv2d> convolutions_;
  std::map<std::array<int, 3>, Linear> linears_;
  std::map<std::array<int, 8>, Pool> pools_;
};

}  // namespace lockstep::vendor
