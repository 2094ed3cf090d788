// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums over the threads of a kernel: exact sums, the parts of a sum in their order, fingerprints.
#pragma once

#include "kernels/device_sums.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <gpu/launch.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

// Adding to an exact sum from a kernel: one atomic addition of an integer, whose order does not matter.

/// atomicAdd's name for a 64-bit integer. Two's complement makes it right for signed ones.
using AtomicWord = unsigned long long;

/// Adds an integer to one in device memory.
__device__ inline void add_integer(std::int64_t* sum, std::int64_t term) {
  atomicAdd(reinterpret_cast<AtomicWord*>(sum), static_cast<AtomicWord>(term));
}

/// round(term * scale), half to even. A float times a power of two is exact in double.
__device__ inline std::int64_t fixed_point(float term, const ExactFormat& format) {
  return __double2ll_rn(static_cast<double>(term) * format.scale);
}

__device__ inline bool fits(float term, const ExactFormat& format) {
  return fabsf(term) < format.limit;
}

/// Counts a term that does not fit.
__device__ inline void refuse(float term, const Refusals& refusals) {
  add_integer(refusals.all, 1);
  if (refusals.of_tensor != nullptr) add_integer(refusals.of_tensor + (fabsf(term) < INFINITY ? 0 : 1), 1);
}

/// Adds a term to element i of the target's sums, or counts it as refused.
__device__ inline void add_exact(const ExactTarget& to, std::size_t i, float term) {
  if (!fits(term, to.format)) return refuse(term, to.refusals);
  add_integer(to.sums + i, fixed_point(term, to.format));
}

/// In each array, adds element i + half to element i for all i < half. Then again for half of that, down to `least`.
/// All threads of the block call it.
template <typename... T>
__device__ inline void add_halves(unsigned half, unsigned least, T*... sums) {
  for (; half >= least; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) ((sums[threadIdx.x] += sums[threadIdx.x + half]), ...);
  }
}

// A sum that is cut into parts which one thread computes one after another (kernels/sum_cuts.hpp). The parts
// before wait in shared memory, where they cost no registers.

/// kCount sums of a thread. No other thread touches them, so no barrier is needed.
template <int kCount>
struct EarlierSums {
  float* sums;  ///< this thread's: [kCount], `stride` numbers from one to the next
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

// Words of a thread in fingerprints (kernels/numerics/fingerprint.hpp), and their sum over the lanes of a
// warp.

__device__ inline std::uint64_t word_of(std::int64_t sum) {
  return static_cast<std::uint64_t>(sum);
}
__device__ inline std::uint64_t word_of(float number) {
  return __float_as_uint(number);
}

/// kCount sums over the lanes of a warp, in any order: they are integers mod 2^64. While a lane has more than one of
/// them, it keeps half and gives its partner the other half.
template <int kCount>
struct WarpWords {
  static_assert(kCount == 2 || kCount == 4 || kCount == 8);
  static constexpr unsigned kLanesOfSum = 32 / kCount;
  std::uint64_t v[kCount] = {};  ///< this lane's; overwritten

  /// The sum that total() gives this lane.
  static __device__ unsigned index() { return threadIdx.x % 32 / kLanesOfSum; }
  /// True for the first of the lanes that are given the same sum.
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
