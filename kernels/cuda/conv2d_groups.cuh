// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the warps of a block share the channels that a convolution sums over, and how they add up what each of
/// them found. A lane is a sample.
#pragma once

#include "kernels/sum_cuts.hpp"

#include <gpu/launch.cuh>

#include <algorithm>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kSamplesPerWarp = 32;

/// The outputs of a convolution: before a pool, and without those that the pool drops where it says so.
struct OutputSize {
  int filters = 0, height = 0, width = 0;
};

/// Group g is warp g of a block.
constexpr int threads_of(const ChannelGroups& groups) {
  return groups.count * kSamplesPerWarp;
}

/// Sums of all groups, [group][output][sample] in shared memory.
struct GroupSums {
  float* sums;
  int groups, outputs;

  __device__ void put(int group, int output, float sum) const {
    sums[(group * outputs + output) * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp] = sum;
  }
  /// The output of this lane's sample.
  __device__ float total(int output) const {
    const float* sum = sums + output * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp;
    float result = sum[0];
#pragma unroll
    for (int group = 1; group < ChannelGroups::kMost; ++group)
      if (group < groups) result += sum[group * outputs * kSamplesPerWarp];
    return result;
  }
};

/// Filters as a convolution of any direction wants them: weight of output f, channel c, tap t of kTaps. The
/// data gradient runs through the taps backwards. Fewer than 2^31 weights.
struct FilterView {
  const float* weights = nullptr;
  int filters = 0;
  int filter_stride = 0, channel_stride = 0;
  bool backwards = false;

  /// 0 for filters beyond the last one.
  __device__ float at(int filter, int channel, int tap, int taps) const {
    if (filter >= filters) return 0;
    return __ldg(weights +
                 (filter * filter_stride + channel * channel_stride + (backwards ? taps - 1 - tap : tap)));
  }
};

/// How many channels of each group have their filters in shared memory at a time, `floats` each.
inline int channels_at_a_time(const ChannelGroups& groups, int floats) {
  constexpr int kFloats = 40 * 1024 / sizeof(float);
  return std::clamp(kFloats / (groups.count * floats), 1, groups.per_group);
}

/// Weights of kFilters outputs and some channels of a group in shared memory: that of channel c, tap t and
/// filter f at [c][t / kLine][t % kLine][f], where each line of kLine taps starts at a multiple of 4 floats.
template <int kTaps, int kLine, int kFilters>
struct FilterCache {
  static constexpr int kLineFloats = pieces(kLine * kFilters, 4) * 4;
  static constexpr int kChannelFloats = kTaps / kLine * kLineFloats;

  /// The order in which weights are copied: for most views, that in which they lie in memory.
  struct WeightPlace {
    int tap, filter, channel;

    __device__ explicit WeightPlace(int i)
        : tap(i % kTaps), filter(i / kTaps % kFilters), channel(i / (kTaps * kFilters)) {}
    __device__ int in_cache() const {
      return channel * kChannelFloats + tap / kLine * kLineFloats + tap % kLine * kFilters + filter;
    }
  };

  /// A warp copies the weights of `channels` channels from `first_channel` on.
  static __device__ void fill(float* cache, const FilterView& view, int first_filter, int first_channel,
                              int channels) {
    constexpr int kAtOnce = 8;  // Loads on their way: after each alone, a warp would wait for the L2 cache.
    const int size = channels * kFilters * kTaps;
#pragma unroll 1
    for (int first = threadIdx.x % kSamplesPerWarp; first < size; first += kAtOnce * kSamplesPerWarp) {
      float weights[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = first + j * kSamplesPerWarp;
        const WeightPlace at(i);
        weights[j] =
            i < size ? view.at(first_filter + at.filter, first_channel + at.channel, at.tap, kTaps) : 0.0F;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = first + j * kSamplesPerWarp;
        if (i < size) cache[WeightPlace(i).in_cache()] = weights[j];
      }
    }
  }
};

/// Four neighbouring floats of shared memory at once.
__device__ inline void load_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

}  // namespace lockstep::LOCKSTEP_GPU
