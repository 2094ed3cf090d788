// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weight gradients: how warps and blocks share the units and terms of one. And many sums over the warps of a block, lane
/// by lane, and then over the lanes.
///
/// Versions:
/// 1. Each warp adds up its lanes, 32 sums for 31 shuffles, and the warps' totals are added. A CPU then pays a tree for
///    every unit.
/// 2. Lanes meet in shared memory, 32 sums at a time, so that there is one tree for each term: 5 shuffles a sum.
/// 3. A warp sends four sums at a time through the tree: while they differ, its lanes share them, 6 shuffles for four.
/// 4. Four threads share a sum, each a quarter of its lanes, four at a time: three of the tree's five steps are
///    additions within a thread. 2 shuffles for eight sums.
#pragma once

#include "kernels/cuda/conv2d_plan.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/device_sums.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::LOCKSTEP_GPU {

// The units and terms of a weight gradient (kernels/sum_cuts.hpp), as warps and blocks share them.

/// A unit is one warp's, a term one block's.
constexpr int threads_of(const GradientSplit& split) {
  return split.units_of_term * kSamplesPerWarp;
}

/// Arguments of every weight gradient kernel: gridDim.z grains from first_grain on.
struct WeightGradientArgs {
  Conv2dShape shape;  ///< shape of a group
  OutputSize y;       ///< size of all groups
  int rows, columns;  ///< those of y: beyond them, dy is 0
  int grain;
  GradientSplit split;
  const float* x;
  const float* dy;
  ExactGradient gradient;
  int first_grain = 0;
};

/// Calls run(args, grains) for as many grains at a time as a grid may have; mostly once.
template <class Run>
void for_grains(WeightGradientArgs args, const Run& run) {
  constexpr int kMostGrains = 65535;
  const int grains = pieces(args.shape.batch, args.grain);
  for (; args.first_grain < grains; args.first_grain += kMostGrains)
    run(args, static_cast<unsigned>(std::min(kMostGrains, grains - args.first_grain)));
}

/// Range that one warp sums over.
struct GradientUnit {
  int first_row, end_row;
  int first_sample, end_sample;  ///< columns of the batch; lane l begins at the l-th and proceeds by 32

  /// Unit `warp` of term blockIdx.y of grain first_grain + blockIdx.z. Empty beyond the last unit.
  __device__ GradientUnit(const WeightGradientArgs& args, int warp) {
    const GradientSplit& split = args.split;
    const int unit = static_cast<int>(blockIdx.y) * split.units_of_term + warp;
    const int row_unit = unit / split.sample_units, sample_unit = unit - row_unit * split.sample_units;
    const int samples = split.sample_groups * GradientSplit::kLanes;
    const int grain_begin = (args.first_grain + static_cast<int>(blockIdx.z)) * args.grain;
    first_row = row_unit * split.rows;
    end_row = min(args.rows, first_row + split.rows);
    first_sample = grain_begin + sample_unit * samples;
    end_sample = min(min(args.shape.batch, grain_begin + args.grain), first_sample + samples);
  }
};

// Sums over the warps of a term.

/// Sums of kCount numbers of each lane over the warps of a term, in shared memory. The terms of a block, of as many
/// warps each, have their sums at the same time.
template <int kCount>
struct TermSums {
  static constexpr int kSet = kCount < 32 ? kCount : 32;  ///< sums whose lanes are in shared memory together
  /// From sum to sum. Eight threads that each load four lanes of a different sum find them in different banks.
  static constexpr int kStride = kSamplesPerWarp + 4;

  /// Floats of a term of so many warps; a multiple of 4.
  __host__ __device__ static constexpr int floats(int warps) {
    return warps * kSet * kStride + pieces(kCount, 4) * 4;
  }

  float*
      shared;  ///< memory of this term: lanes, [warp][sum][lane], and after them totals; aligned to 16 bytes
  int warps;   ///< warps of a term
  int warp;    ///< the number of this one

  /// [kCount], there after a __syncthreads().
  __device__ float* totals() const { return shared + warps * kSet * kStride; }

  /// All threads of the block.
  __device__ void add(const float (&v)[kCount]) const {
    constexpr int kSets = pieces(kCount, kSet);
    float* const lanes = shared + warp * kSet * kStride + threadIdx.x % kSamplesPerWarp;
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      if (set > 0) __syncthreads();  // The lanes before have been read.
      const int count = kCount - set * kSet < kSet ? kCount - set * kSet : kSet;
#pragma unroll
      for (int i = 0; i < count; ++i) lanes[i * kStride] = v[set * kSet + i];
      __syncthreads();
#pragma unroll 1
      for (int first = warp * kSumsOfWarp; first < count; first += warps * kSumsOfWarp) {
        const int i = first + static_cast<int>(threadIdx.x) % kSumsOfWarp;
        const float sum = total(min(i, count - 1));
        if (threadIdx.x % kSamplesPerWarp < kSumsOfWarp && i < count) totals()[set * kSet + i] = sum;
      }
    }
  }

 private:
  /// Threads with the same number modulo this have the same sum.
  static constexpr int kSumsOfWarp = 8;
  static_assert(lane_distance(0) == 16 && lane_distance(1) == 1 && lane_distance(2) == 2 &&
                lane_distance(3) == 8 && lane_distance(4) == 4);

  /// The tree of kernels/sum_cuts.hpp over the lanes of sum i, each of which is added up over the warps first.
  __device__ float total(int i) const {
    const int quarter = static_cast<int>(threadIdx.x) % kSamplesPerWarp / kSumsOfWarp;
    const float* from = shared + i * kStride + quarter * 4;
    float low[4], high[4];  // four lanes, and those 16 further on
    load_four(from, low);
    load_four(from + 16, high);
    for (int other = 1; other < warps; ++other) {
      from += kSet * kStride;
      add_four(from, low);
      add_four(from + 16, high);
    }
    float sum = ((low[0] + high[0]) + (low[1] + high[1])) + ((low[2] + high[2]) + (low[3] + high[3]));
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2 * kSumsOfWarp);
    return sum + __shfl_xor_sync(0xFFFFFFFFU, sum, kSumsOfWarp);
  }
  static __device__ void add_four(const float* from, float (&to)[4]) {
    float four[4];
    load_four(from, four);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] += four[k];
  }
};

// Kernels whose threads have all taps of a channel for some filters.

/// The most warps of a block, which has one for each unit of a term of each channel. 12, on a multiprocessor together,
/// leave a thread 168 registers.
template <int kChannels>
inline constexpr int kMostWindowWarps = kChannels == 1 ? GradientSplit::kMostUnitsOfTerm : 12;

/// The channel and filters whose taps a warp has. A block has kChannels channels, and as many warps for each as a term
/// has units.
template <int kFilters, int kChannels>
struct TapPlace {
  int units;                   ///< units of a term
  int term, warp;              ///< number in the block; in the term
  int first_channel, channel;  ///< the block's; the term's, which may be beyond the last one
  int first_filter;

  __device__ explicit TapPlace(const WeightGradientArgs& args) : units(args.split.units_of_term) {
    const int block = static_cast<int>(blockIdx.x),
              of_block = static_cast<int>(threadIdx.x) / kSamplesPerWarp;
    const int channel_blocks = pieces(args.shape.in_channels, kChannels),
              filter_block = block / channel_blocks;
    term = kChannels == 1 ? 0 : of_block / units;
    warp = of_block - term * units;
    first_channel = (block - filter_block * channel_blocks) * kChannels;
    channel = first_channel + term;
    first_filter = filter_block * kFilters;
  }

  /// For filters of so many taps.
  template <int kTaps>
  __host__ __device__ static constexpr int shared_floats(int units_of_term) {
    return TermSums<kTaps * kFilters>::floats(units_of_term) + TermSums<kFilters>::floats(units_of_term);
  }

  /// All threads of the block.
  template <class Sums>
  __device__ void add_totals(const WeightGradientArgs& args, const Sums& sums, const float (&bias)[kFilters],
                             float* shared) const {
    using TapTotals = TermSums<Sums::kCount>;
    float* const of_term = shared + term * shared_floats<Sums::kTaps>(units);
    const TapTotals taps = {of_term, units, warp};
    const TermSums<kFilters> biases = {of_term + TapTotals::floats(units), units, warp};
    if (first_channel == 0) biases.add(bias);
    taps.add(sums.at);
    __syncthreads();
    if (channel >= args.shape.in_channels) return;
    const int filters = min(kFilters, args.y.filters - first_filter);
    const int thread = static_cast<int>(threadIdx.x) - term * units * kSamplesPerWarp;
    for (int i = thread; i < filters * Sums::kTaps; i += units * kSamplesPerWarp) {
      const int f = i / Sums::kTaps, tap = i % Sums::kTaps;
      const std::size_t filter =
          static_cast<std::size_t>(first_filter + f) * args.shape.in_channels + channel;
      add_exact(args.gradient.weight, filter * Sums::kTaps + tap, taps.totals()[i]);
    }
    if (channel == 0 && thread < filters)
      add_exact(args.gradient.bias, first_filter + thread, biases.totals()[thread]);
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
