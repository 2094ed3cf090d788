// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the words of a thread add to fingerprints (kernels/numerics/fingerprint.hpp), and how those of a warp become one.
#pragma once

#include "kernels/cuda/exact_sum.cuh"
#include "kernels/numerics/fingerprint.hpp"

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

__device__ inline std::uint64_t word_of(std::int64_t sum) {
  return static_cast<std::uint64_t>(sum);
}
__device__ inline std::uint64_t word_of(float number) {
  return __float_as_uint(number);
}

/// kCount sums over the lanes of a warp, in any order: they are integers mod 2^64. While a lane has more than one of them,
/// it keeps half and gives its partner the other half.
template <int kCount>
struct WarpWords {
  static_assert(kCount == 2 || kCount == 4);
  static constexpr unsigned kLanesOfSum = 32 / kCount;
  std::uint64_t v[kCount] = {};  ///< of this lane; overwritten

  /// Which of the sums total() gives this lane.
  static __device__ unsigned index() { return threadIdx.x % 32 / kLanesOfSum; }
  /// Of the lanes that are given the same sum, this is the first.
  static __device__ bool is_first() { return threadIdx.x % kLanesOfSum == 0; }

  /// All lanes of the warp.
  __device__ std::uint64_t total() {
#pragma unroll
    for (int half = kCount / 2; half > 0; half /= 2) {
      const int distance = half * static_cast<int>(kLanesOfSum);
      const bool upper = (threadIdx.x & distance) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const std::uint64_t keep = upper ? v[i + half] : v[i], give = upper ? v[i] : v[i + half];
        v[i] = keep + __shfl_xor_sync(0xFFFFFFFFU, give, distance);
      }
    }
#pragma unroll
    for (int distance = static_cast<int>(kLanesOfSum) / 2; distance > 0; distance /= 2)
      v[0] += __shfl_xor_sync(0xFFFFFFFFU, v[0], distance);
    return v[0];
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
