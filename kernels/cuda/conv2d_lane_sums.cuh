// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Many sums over the warps of a block, lane by lane, and then over the lanes.
///
/// Versions:
/// 1. Each warp adds up its lanes, 32 sums for 31 shuffles, and the warps' totals are added. A CPU then pays a tree for
///    every unit.
/// 2. Lanes meet in shared memory, 32 sums at a time, so that there is one tree for each term: 5 shuffles a sum.
/// 3. A warp takes four sums at a time through the tree: while they differ, its lanes share them, 6 shuffles for four.
///    By the count of instructions 125 sums of four warps take about 500 a warp, as in version 1, and 670 in version 2.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"

namespace lockstep::LOCKSTEP_GPU {

/// Four sums over the lanes of a warp by the tree of kernels/sum_cuts.hpp. In its first two steps a lane
/// keeps half of the sums that it has and gives its partner, which adds the same two numbers, the other half.
struct FourSums {
  static constexpr int kCount = 4;
  static constexpr unsigned kFirst = lane_distance(0), kSecond = lane_distance(1);
  float v[kCount];  ///< of this lane; overwritten

  /// Which of the sums total() gives this lane.
  static __device__ int index() {
    return ((threadIdx.x & kFirst) != 0 ? 2 : 0) + ((threadIdx.x & kSecond) != 0 ? 1 : 0);
  }
  /// Of the lanes that are given the same sum, this is the first.
  static __device__ bool is_first() {
    return threadIdx.x % kSamplesPerWarp == (threadIdx.x & (kFirst | kSecond));
  }
  /// All lanes of the warp.
  __device__ float total() {
    const bool upper = (threadIdx.x & kFirst) != 0;
    float give0 = upper ? v[0] : v[2], give1 = upper ? v[1] : v[3];
    exchange(give0, give1, kFirst);
    v[0] = (upper ? v[2] : v[0]) + give0;
    v[1] = (upper ? v[3] : v[1]) + give1;
    const bool second = (threadIdx.x & kSecond) != 0;
    v[0] = (second ? v[1] : v[0]) + __shfl_xor_sync(kWholeWarp, second ? v[0] : v[1], kSecond);
#pragma unroll
    for (int step = 2; step < kLaneSteps; ++step)
      v[0] += __shfl_xor_sync(kWholeWarp, v[0], lane_distance(step));
    return v[0];
  }

 private:
  static constexpr unsigned kWholeWarp = 0xFFFFFFFFU;

  /// One exchange of 64 bits, which on the emulator is one wait in place of two.
  static __device__ void exchange(float& a, float& b, int distance) {
    const unsigned long long high = __float_as_uint(b);
    const unsigned long long got = __shfl_xor_sync(kWholeWarp, high << 32 | __float_as_uint(a), distance);
    a = __uint_as_float(static_cast<unsigned>(got));
    b = __uint_as_float(static_cast<unsigned>(got >> 32));
  }
};

/// Sums of kCount numbers of each lane over all threads of the block, in shared memory.
template <int kCount>
struct BlockSums {
  static constexpr int kAtOnce = 32;  ///< sums whose lanes are in shared memory together

  /// For a block of so many warps.
  __host__ __device__ static constexpr int floats(int warps) {
    return warps * (kCount < kAtOnce ? kCount : kAtOnce) * kSamplesPerWarp + kCount;
  }

  float* totals;  ///< [kCount], then the lanes: [warp][sum][lane]

  /// All threads of the block. Afterwards, totals[i] is the sum of v[i], after a __syncthreads().
  __device__ void add(const float (&v)[kCount]) const {
    constexpr int kSets = pieces(kCount, kAtOnce), kSet = kCount < kAtOnce ? kCount : kAtOnce;
    const int warps = static_cast<int>(blockDim.x) / kSamplesPerWarp;
    const int warp = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
    float* const lanes = totals + kCount + threadIdx.x % kSamplesPerWarp;
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      if (set > 0) __syncthreads();  // The lanes before have been read.
#pragma unroll
      for (int i = 0; i < kSet; ++i) {
        const int from = set * kAtOnce + i;
        if (from < kCount) lanes[(warp * kSet + i) * kSamplesPerWarp] = v[from < kCount ? from : 0];
      }
      __syncthreads();
      const int count = kCount - set * kAtOnce < kSet ? kCount - set * kAtOnce : kSet;
#pragma unroll 1
      for (int i = warp * FourSums::kCount; i < count; i += warps * FourSums::kCount) {
        const float sum = total_of_four(lanes + i * kSamplesPerWarp, count - i, warps, kSet);
        const int mine = i + FourSums::index();
        if (FourSums::is_first() && mine < count) totals[set * kAtOnce + mine] = sum;
      }
    }
  }

 private:
  /// @param lanes  this lane's number of the first of four sums, of which there are `count`, in the first warp;
  ///               kSamplesPerWarp apart from sum to sum and `set` times as much from warp to warp
  static __device__ float total_of_four(const float* lanes, int count, int warps, int set) {
    FourSums sums = {};
    for (int warp = 0; warp < warps; ++warp, lanes += set * kSamplesPerWarp) {
#pragma unroll
      for (int j = 0; j < FourSums::kCount; ++j) {
        const float number = j < count ? lanes[j * kSamplesPerWarp] : 0.0F;
        sums.v[j] = warp == 0 ? number : sums.v[j] + number;
      }
    }
    return sums.total();
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
