// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The cuDNN algorithm of a convolution. The three directions have the same functions under
/// different names: here they are one, with the description of the direction as parameter.
#pragma once

#include "kernels/vendor/handles.hpp"
#include "kernels/vendor/vendor.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace lockstep::vendor {

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

/// The algorithm for the direction's operation on a, b and c. Not while the handle's stream captures.
template <typename Api, typename A, typename B, typename C>
Conv2dAlgorithm<Api> choose_algorithm(cudnnHandle_t handle, VendorAlgorithms algorithms, A a, B b,
                                      cudnnConvolutionDescriptor_t convolution, C c) {
  // The one that promises most (or that was fastest) comes first. cuDNN also ranks what they would do with TF32, which
  // the convolution's description rules out: that comes last.
  constexpr int kModes = 2;
  std::vector<typename Api::Ranked> ranking(kModes * Api::kAlgorithms);
  const auto rank = algorithms == VendorAlgorithms::kFastest ? Api::measure : Api::rank;
  int count = 0;
  LOCKSTEP_CUDNN(
      rank(handle, a, b, convolution, c, static_cast<int>(ranking.size()), &count, ranking.data()));
  ranking.resize(static_cast<std::size_t>(count));
  std::stable_partition(ranking.begin(), ranking.end(),
                        [](const auto& one) { return one.mathType == CUDNN_FMA_MATH; });
  Conv2dAlgorithm<Api> chosen{};
  for (const auto& ranked : ranking) {
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

}  // namespace lockstep::vendor
