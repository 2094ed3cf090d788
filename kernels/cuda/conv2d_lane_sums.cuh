// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Many sums over the lanes of a warp, and then over the warps of a block, in a fixed order.
#pragma once

#include "kernels/cuda/conv2d_groups.cuh"

namespace lockstep::LOCKSTEP_GPU {

/// 2 * kHalf sums become kHalf: a lane keeps one half of those it has and gets that half from its partner.
template <int kHalf>
__device__ inline void halve_sums(float (&v)[kSamplesPerWarp]) {
  const bool upper = (threadIdx.x & static_cast<unsigned>(kHalf)) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float keep = upper ? v[i + kHalf] : v[i];
    const float give = upper ? v[i] : v[i + kHalf];
    v[i] = keep + __shfl_xor_sync(0xFFFFFFFFU, give, kHalf);
  }
}

/// 32 sums over the lanes of a warp for 31 shuffles. Every sum is the same tree of additions. v is
/// overwritten.
///
/// @returns to lane l the sum of v[l]
__device__ inline float sum_over_lanes(float (&v)[kSamplesPerWarp]) {
  halve_sums<16>(v);
  halve_sums<8>(v);
  halve_sums<4>(v);
  halve_sums<2>(v);
  halve_sums<1>(v);
  return v[0];
}

/// Sums of kCount numbers of each lane over all threads of the block, in shared memory.
template <int kCount>
struct BlockSums {
  static constexpr int kSets = pieces(kCount, kSamplesPerWarp), kFloats = kSets * kSamplesPerWarp;
  float* sums;  ///< [warp][kFloats]

  /// All lanes of the warp.
  __device__ void put(const float (&v)[kCount]) const {
    float* mine = sums + threadIdx.x / kSamplesPerWarp * kFloats + threadIdx.x % kSamplesPerWarp;
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      float part[kSamplesPerWarp];
#pragma unroll
      for (int i = 0; i < kSamplesPerWarp; ++i) {
        const int from = set * kSamplesPerWarp + i;
        part[i] = from < kCount ? v[from < kCount ? from : 0] : 0.0F;
      }
      mine[set * kSamplesPerWarp] = sum_over_lanes(part);
    }
  }
  /// After a __syncthreads().
  __device__ float total(int i) const {
    const int warps = static_cast<int>(blockDim.x) / kSamplesPerWarp;
    float result = sums[i];
    for (int warp = 1; warp < warps; ++warp) result += sums[warp * kFloats + i];
    return result;
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
