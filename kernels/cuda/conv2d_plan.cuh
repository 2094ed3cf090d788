// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the warps of a block share the channels that a convolution sums over, and add their
/// results. A lane is a sample.
#pragma once

#include "kernels/cuda/kernels.hpp"
#include "kernels/sum_cuts.hpp"

#include <gpu/launch.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace lockstep::LOCKSTEP_GPU {

inline constexpr int kSamplesPerWarp = 32;

/// The outputs of a convolution: before a pool, and without those that the pool drops where it says so.
struct OutputSize {
  int filters = 0, height = 0, width = 0;
};

/// The channels of a convolution with groups that a tile has. `most` of one group, or fewer at the group's end. Tiles
/// are counted through all groups.
struct GroupBlock {
  int group, first, count;

  __device__ GroupBlock(int block, int channels_of_group, int most) {
    const int blocks = pieces(channels_of_group, most);
    group = block / blocks;
    const int within = (block - group * blocks) * most;
    first = group * channels_of_group + within;
    count = min(most, channels_of_group - within);
  }
};

/// Group g is warp g of a block.
constexpr int threads_of(const ChannelGroups& groups) {
  return groups.count * kSamplesPerWarp;
}

/// Sums of all groups, [group][output][sample] in shared memory.
struct GroupSums {
  float* sums;
  int groups, outputs;
  int group;  ///< group of this warp

  __device__ void put(int output, float sum) const {
    sums[(group * outputs + output) * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp] = sum;
  }
  /// The output of this lane's sample.
  __device__ float total(int output) const {
    const float* sum = sums + output * kSamplesPerWarp + threadIdx.x % kSamplesPerWarp;
    float result = sum[0];
#pragma unroll
    for (int other = 1; other < ChannelGroups::kMost; ++other)
      if (other < groups) result += sum[other * outputs * kSamplesPerWarp];
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

  __device__ int place(int filter, int channel, int tap, int taps) const {
    return filter * filter_stride + channel * channel_stride + (backwards ? taps - 1 - tap : tap);
  }
};

/// Weights of kFilters outputs and some channels of a group in shared memory. That of channel c, tap t and
/// filter f is at [c][t / kLine][t % kLine][f], where each line of kLine taps starts at a multiple of 4 floats.
template <int kTaps, int kLine, int kFilters>
struct FilterCache {
  static constexpr int kLineFloats = pieces(kLine * kFilters, 4) * 4;
  static constexpr int kChannelFloats = kTaps / kLine * kLineFloats;
  /// So many floats may be in shared memory, at least a channel of each group.
  static constexpr int kMostFloats = 40 * 1024 / sizeof(float);
  static_assert(ChannelGroups::kMost * kChannelFloats <= kMostFloats);

  /// How many channels of each group have their filters in shared memory at a time.
  static int channels_at_a_time(const ChannelGroups& groups) {
    return std::min(kMostFloats / (groups.count * kChannelFloats), groups.per_group);
  }

  /// A warp copies the weights of `channels` channels from `first_channel` on. A lane has a tap of all filters, so that
  /// where each goes is a constant; the channels of as many filters as fit are on their way together.
  static __device__ void fill(float* cache, const FilterView& view, int first_filter, int first_channel,
                              int channels) {
    constexpr int kTogether = kSamplesPerWarp / kTaps, kSteps = kFilters < 8 ? 8 / kFilters : 1;
    static_assert(kTogether > 0, "each tap has a lane");
    const int lane = static_cast<int>(threadIdx.x) % kSamplesPerWarp, tap = lane % kTaps;
    const int filters = view.filters - first_filter;
    const float* from = view.weights + view.place(first_filter, first_channel, tap, kTaps);
    float* const to = cache + tap / kLine * kLineFloats + tap % kLine * kFilters;
#pragma unroll 1
    for (int first = lane / kTaps; first < channels && lane < kTogether * kTaps;
         first += kSteps * kTogether) {
      float weights[kSteps][kFilters];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int c = first + step * kTogether;
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
          const bool is_there = c < channels && f < filters;
          weights[step][f] =
              is_there ? load_input(from + (c * view.channel_stride + f * view.filter_stride)) : 0.0F;
        }
      }
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int c = first + step * kTogether;
#pragma unroll
        for (int f = 0; f < kFilters; ++f)
          if (c < channels) to[c * kChannelFloats + f] = weights[step][f];
      }
    }
  }
};

/// Four neighbouring floats of shared memory at once.
__device__ inline void load_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

// Choice of the tile of a thread of conv2d_direct.cuh, _scatter.cuh or _window.cuh: a guess at the clocks of
// each choice. No choice changes the bits of a result.

/// Work of a warp, in instructions, and in numbers that reach registers from memory.
struct WarpWork {
  double multiply_adds, loads, weights;

  /// A load needs an instruction for its address; four weights come at a time.
  double instructions() const { return multiply_adds + 2 * loads + weights / 4; }
  double numbers() const { return loads + weights; }
};

/// How many blocks one after another, or side by side, fall to the busiest multiprocessor.
inline double rounds_of(const Chip& chip, dim3 grid) {
  const std::int64_t blocks = std::int64_t{1} * grid.x * grid.y * grid.z;
  const std::int64_t rounds = (blocks + chip.multiprocessors - 1) / chip.multiprocessors;
  return static_cast<double>(rounds);
}

/// Clocks until `rounds` blocks of `warps` warps are done. Each of the 4 schedulers of a multiprocessor
/// starts one instruction a clock; all together they receive the numbers of one warp a clock.
inline double guess_clocks(double rounds, int warps, const WarpWork& work) {
  const double issue = std::max(1.0 * pieces(warps, 4), rounds * warps / 4) * work.instructions();
  return std::max(issue, rounds * warps * work.numbers());
}

/// Calls run(T) for the T among Choices whose guess(T) is the least, the first of equals.
template <class... Choices, class Guess, class Run>
void run_best(const Guess& guess, const Run& run) {
  const double clocks[] = {guess(Choices{})...};
  const auto best = std::min_element(std::begin(clocks), std::end(clocks)) - std::begin(clocks);
  std::ptrdiff_t index = 0;
  ((index++ == best ? run(Choices{}) : void()), ...);
}

}  // namespace lockstep::LOCKSTEP_GPU
