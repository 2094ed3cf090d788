// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The units and terms of a weight gradient (kernels/sum_cuts.hpp), as warps and blocks share them.
#pragma once

#include "kernels/cuda/conv2d_groups.cuh"
#include "kernels/device_ops.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>

namespace lockstep::LOCKSTEP_GPU {

/// A unit is one warp's, a term one block's.
constexpr int threads_of(const GradientSplit& split) {
  return split.units_of_term * kSamplesPerWarp;
}

/// What every weight gradient kernel is called with: gridDim.z grains from first_grain on.
struct WeightGradientArgs {
  Conv2dShape shape;
  OutputSize y;
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

/// What one warp sums over.
struct GradientUnit {
  int first_row, end_row;
  int first_sample, end_sample;  ///< columns of the batch; lane l begins at the l-th and proceeds by 32

  /// Of this warp: unit blockIdx.y * warps + warp of grain first_grain + blockIdx.z. Empty for warps beyond
  /// the last unit.
  __device__ explicit GradientUnit(const WeightGradientArgs& args) {
    const GradientSplit& split = args.split;
    const int unit =
        static_cast<int>(blockIdx.y) * split.units_of_term + static_cast<int>(threadIdx.x) / kSamplesPerWarp;
    const int row_unit = unit / split.sample_units, sample_unit = unit - row_unit * split.sample_units;
    const int samples = split.sample_groups * GradientSplit::kLanes;
    const int grain_begin = (args.first_grain + static_cast<int>(blockIdx.z)) * args.grain;
    first_row = row_unit * split.rows;
    end_row = min(args.y.height, first_row + split.rows);
    first_sample = grain_begin + sample_unit * samples;
    end_sample = min(min(args.shape.batch, grain_begin + args.grain), first_sample + samples);
  }
};

}  // namespace lockstep::LOCKSTEP_GPU
