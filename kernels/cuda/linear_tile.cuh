// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Common parts of the kernels of fully connected layers. Cuts of matrices into tiles, and threads that read
/// several numbers of shared memory at once.
#pragma once

#include "kernels/cuda/epilogue.cuh"

#include <gpu/launch.cuh>

#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kLanes = 32;

/// True if a grid has a block for (almost) each of `wanted` multiprocessors.
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

// How the gradient of neighbouring features is spread through the epilogue that made them. Feature
// (channel * pooled height + row) * pooled width + column is the window of that place.

/// The windows of one sample in the order of features: divides once, then only adds.
template <int kPool>
class WindowWalk {
 public:
  /// Starts at the window of `feature` (of any number: those beyond the last one are not stored).
  __device__ WindowWalk(const EpilogueBackward& expand, int batch, int feature, int sample, float* dx)
      : width_(expand.width / kPool), height_(expand.height / kPool), batch_(batch) {
    const int line = feature / width_;
    place_ = {expand.height, expand.width, line / height_, line % height_, feature % width_, sample};
    const int pixel =
        (place_.channel * expand.height + place_.row * kPool) * expand.width + place_.column * kPool;
    corner_ = dx + pixel * batch_ + static_cast<std::size_t>(sample);
  }

  __device__ void store(const EpilogueBackward& expand, unsigned mask, float dy) const {
    store_window<kPool>(expand, place_, mask, expand.factors.times(dy), batch_, corner_);
  }

  __device__ void advance(const EpilogueBackward& expand) {
    int pixels = kPool;
    if (++place_.column == width_) {
      place_.column = 0;
      pixels = expand.width * kPool - (width_ - 1) * kPool;  // to the start of the next line of windows
      if (++place_.row == height_) {
        place_.row = 0;
        ++place_.channel;
        pixels += (expand.height - height_ * kPool) * expand.width;
      }
    }
    corner_ += pixels * batch_;
  }

 private:
  int width_, height_;  ///< those of the pooled image
  std::size_t batch_;
  WindowPlace place_;
  float* corner_;
};

}  // namespace lockstep::LOCKSTEP_GPU
