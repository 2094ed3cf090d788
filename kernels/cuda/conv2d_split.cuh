// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the sum that a weight gradient is, over the samples and pixels of a grain, is cut into units for
/// warps, and the units into the terms of an exact sum.
#pragma once

#include "kernels/cuda/conv2d_groups.cuh"
#include "kernels/device/device_ops.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>

namespace lockstep::LOCKSTEP_GPU {

/// A unit is some rows of pixels of some samples of a grain: one warp's, a lane being a sample. A term, which
/// is one block's, consists of `warps` units. A function of shape and grain alone, not of the batch, because
/// it decides the bits of the gradient.
struct GradientSplit {
  static constexpr int kMostWarps = 8;
  static constexpr int kMostUnits = kPartialSums * kMostWarps;

  int grain = 1;
  int sample_groups = 1;  ///< of 32 samples, of a unit, one after another
  int sample_units = 1;
  int rows = 1;  ///< of pixels, of a unit
  int row_units = 1;
  int warps = 1;
  int terms = 1;  ///< of a grain

  /// @param y      of the forward direction
  /// @param pairs  of input and output channel: the fewer there are, the more units
  GradientSplit(int grain_samples, const OutputSize& y, int pairs) : grain(grain_samples) {
    constexpr int kWantedUnits = 5000;  // Of all pairs together: several for each of 528 schedulers.
    constexpr int kLeastPixels = 16;    // Fewer are not worth the sums over the lanes.
    const int groups = pieces(grain, kSamplesPerWarp);
    sample_groups = pieces(groups, kMostUnits);
    sample_units = pieces(groups, sample_groups);
    const int wanted = pieces(kWantedUnits, std::min(pairs, kWantedUnits) * sample_units);
    const int least_rows = std::min(y.height, pieces(kLeastPixels, y.width));
    rows = std::max(least_rows, pieces(y.height, std::min({y.height, wanted, kMostUnits / sample_units})));
    row_units = pieces(y.height, rows);
    terms = pieces(units(), std::max(4, pieces(units(), kPartialSums)));
    warps = pieces(units(), terms);
  }
  __host__ __device__ constexpr int units() const { return sample_units * row_units; }
  constexpr int threads() const { return warps * kSamplesPerWarp; }
};

/// What every weight gradient kernel is called with: gridDim.z grains from first_grain on.
struct WeightGradientArgs {
  Conv2dShape shape;
  OutputSize y;
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
  const int grains = pieces(args.shape.batch, args.split.grain);
  for (; args.first_grain < grains; args.first_grain += kMostGrains)
    run(args, static_cast<unsigned>(std::min(kMostGrains, grains - args.first_grain)));
}

/// What one warp sums over.
struct GradientUnit {
  int first_row, end_row;
  int first_sample, end_sample;  ///< columns of the batch; lane l begins at the l-th and proceeds by 32

  /// Of this warp: unit blockIdx.y * warps + warp of grain first_grain + blockIdx.z. Empty for warps beyond
  /// the last unit.
  __device__ explicit GradientUnit(const WeightGradientArgs& args) {
    const GradientSplit& split = args.split;
    const int unit =
        static_cast<int>(blockIdx.y) * split.warps + static_cast<int>(threadIdx.x) / kSamplesPerWarp;
    const int sample_unit = unit / split.row_units;
    const int samples = split.sample_groups * kSamplesPerWarp;
    const int grain_begin = (args.first_grain + static_cast<int>(blockIdx.z)) * split.grain;
    first_row = (unit - sample_unit * split.row_units) * split.rows;
    end_row = min(args.y.height, first_row + split.rows);
    first_sample = grain_begin + sample_unit * samples;
    end_sample = min(min(args.shape.batch, grain_begin + split.grain), first_sample + samples);
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
