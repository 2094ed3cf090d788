// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the warps of a block share the channels that a convolution sums over, and how they add up what each of
/// them found. A lane is a sample.
#pragma once

#include <gpu/launch.cuh>

#include <algorithm>
#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kSamplesPerWarp = 32;

__host__ __device__ constexpr int pieces(int size, int piece) {
  return (size + piece - 1) / piece;
}

/// The outputs of a convolution: before a pool, and without those that the pool drops where it says so.
struct OutputSize {
  int filters = 0, height = 0, width = 0;
};

/// Group g, which is warp g of a block, sums over channels [g * per_group, (g + 1) * per_group), in order;
/// then the sums of groups 0, 1, ... are added in order. A function of the number of channels alone, because
/// it decides the bits of a result.
struct ChannelGroups {
  static constexpr int kMost = 5;
  int channels = 1, count = 1, per_group = 1;

  explicit ChannelGroups(int all_channels) : channels(all_channels), count(std::min(all_channels, kMost)) {
    const int four = 4 * pieces(channels, 4), five = 5 * pieces(channels, 5);
    if (channels > 4 && four <= five) count = 4;
    per_group = pieces(channels, count);
  }
  constexpr int threads() const { return count * kSamplesPerWarp; }
};

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
    for (int group = 1; group < groups; ++group) result += sum[group * outputs * kSamplesPerWarp];
    return result;
  }
};

/// Filters as a convolution of any direction wants them: weight of output f, channel c, tap t of kTaps. The
/// data gradient runs through the taps backwards.
struct FilterView {
  const float* weights = nullptr;
  int filters = 0, channels = 0;
  std::size_t filter_stride = 0, channel_stride = 0;
  bool backwards = false;

  __device__ float at(int filter, int channel, int tap, int taps) const {
    if (filter >= filters || channel >= channels) return 0;
    return weights[filter * filter_stride + channel * channel_stride + (backwards ? taps - 1 - tap : tap)];
  }
};

/// How many channels of each group have their filters in shared memory at a time, `floats` each.
inline int channels_at_a_time(const ChannelGroups& groups, int floats) {
  constexpr int kFloats = 40 * 1024 / sizeof(float);
  return std::clamp(kFloats / (groups.count * floats), 1, groups.per_group);
}

/// Copies the weights of kFilters outputs, from `first_filter` on, and of the channels from..from + count of
/// each group into shared memory: weight of tap t, filter f at [group * count + channel][t / kLine]
/// [t % kLine][f], where each line of kLine taps starts at a multiple of 4 floats.
template <int kTaps, int kLine, int kFilters>
struct FilterCache {
  static constexpr int kLineFloats = pieces(kLine * kFilters, 4) * 4;
  static constexpr int kChannelFloats = kTaps / kLine * kLineFloats;

  static __device__ void fill(float* cache, const FilterView& view, int first_filter, int per_group, int from,
                              int count) {
    const int groups = static_cast<int>(blockDim.x) / kSamplesPerWarp;
    for (int i = threadIdx.x; i < groups * count * kFilters * kTaps; i += blockDim.x) {
      const int tap = i % kTaps, filter = i / kTaps % kFilters, slot = i / (kTaps * kFilters);
      const int group = slot / count, channel = from + slot - group * count;
      const bool is_there = channel < per_group;
      cache[slot * kChannelFloats + tap / kLine * kLineFloats + tap % kLine * kFilters + filter] =
          is_there ? view.at(first_filter + filter, group * per_group + channel, tap, kTaps) : 0.0F;
    }
  }
};

/// Four neighbouring floats of shared memory at once.
__device__ inline void load_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

}  // namespace lockstep::LOCKSTEP_GPU
