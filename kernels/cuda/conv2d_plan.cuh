// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which tile a thread of conv2d_direct.cuh, _scatter.cuh or _window.cuh computes: a guess at the clocks of
/// each choice. No choice changes the bits of a result.
#pragma once

#include "kernels/cuda/conv2d_groups.cuh"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace lockstep::LOCKSTEP_GPU {

/// What a warp does, in instructions, and in numbers that reach registers from memory.
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
