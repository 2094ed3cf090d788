// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A sum that is cut into parts which one thread computes one after another (kernels/sum_cuts.hpp): the parts
/// before wait in shared memory, where they cost no registers.
#pragma once

#include <gpu/launch.cuh>

namespace lockstep::LOCKSTEP_GPU {

/// kCount sums of a thread. No other thread touches them, so no barrier is needed.
template <int kCount>
struct EarlierSums {
  float* sums;  ///< of this thread: [kCount], `stride` apart
  int stride;

  /// For so many threads.
  static constexpr int floats(int threads) { return kCount * threads; }
  /// @param all  floats(threads)
  __device__ EarlierSums(float* all, int thread, int threads) : sums(all + thread), stride(threads) {}

  /// Adds a part to those before, in order, and begins the next one.
  template <typename Sums>
  __device__ void fold(bool is_first, Sums&& sum) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float& before = sums[i * stride];
      before = is_first ? sum(i) : before + sum(i);
      sum(i) = 0;
    }
  }
  /// The sum of all parts, of which this is the last, and not the only one.
  template <typename Sums>
  __device__ void finish(Sums&& sum) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum(i) = sums[i * stride] + sum(i);
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
