// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the kernels of fully connected layers share: how they cut matrices into tiles, and how threads read
/// several numbers of shared memory at once.
#pragma once

#include <gpu/launch.cuh>

#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kLanes = 32;

/// How many tiles cover `size`.
__host__ __device__ constexpr int tiles(int size, int tile) {
  return (size + tile - 1) / tile;
}

/// Whether a grid has a block for (almost) each of `wanted` multiprocessors.
inline bool fills(dim3 grid, int wanted) {
  return std::uint64_t{4} * grid.x * grid.y * grid.z >= std::uint64_t{3} * static_cast<unsigned>(wanted);
}

/// kCount (2, or a multiple of 4) neighbouring numbers, aligned to 8 or 16 bytes.
template <int kCount>
__device__ inline void load_neighbours(const float* from, float (&to)[kCount]) {
  if constexpr (kCount == 2) {
    const float2 pair = *reinterpret_cast<const float2*>(from);
    to[0] = pair.x, to[1] = pair.y;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  }
}

template <int kCount>
__device__ inline void store_neighbours(const float (&from)[kCount], float* to) {
  if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(to) = {from[0], from[1]};
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *reinterpret_cast<float4*>(to + i) = {from[i], from[i + 1], from[i + 2], from[i + 3]};
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
