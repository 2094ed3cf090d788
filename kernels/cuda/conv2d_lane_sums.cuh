// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Many sums over the warps of a block, lane by lane, and then over the lanes.
///
/// Versions: (1) each warp adds up its lanes, 32 sums for 31 shuffles, and the warps' totals are added: a CPU then pays a
/// tree for every unit. (2) Lanes meet in shared memory, 32 sums at a time, so that there is one tree for each term.
/// By the count of instructions 125 sums of four warps take about 670 a warp instead of 500.
#pragma once

#include "kernels/cuda/conv2d_groups.cuh"

namespace lockstep::LOCKSTEP_GPU {

/// The sum of all lanes of a warp, in each of them.
__device__ inline float add_lanes(float v) {
#pragma unroll
  for (int step = 0; step < kLaneSteps; ++step) v += __shfl_xor_sync(0xFFFFFFFFU, v, lane_distance(step));
  return v;
}

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
#pragma unroll 2
      for (int i = warp; i < count; i += warps) {
        float sum = lanes[i * kSamplesPerWarp];
        for (int other = 1; other < warps; ++other) sum += lanes[(other * kSet + i) * kSamplesPerWarp];
        sum = add_lanes(sum);
        if (threadIdx.x % kSamplesPerWarp == 0) totals[set * kAtOnce + i] = sum;
      }
    }
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
