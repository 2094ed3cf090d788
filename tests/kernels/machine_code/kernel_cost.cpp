// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernel_cost.hpp"

#include <algorithm>
#include <tuple>

namespace lockstep::machine_code {
namespace {

constexpr int kWarpSize = 32;

int pieces(int size, int piece) {
  return (size + piece - 1) / piece;
}

/// The last instruction of the loops within `loop` that this one belongs to; the one before it, if it is in none.
std::size_t end_of_inner(const std::vector<Loop>& loops, const Loop& loop, std::size_t instruction) {
  std::size_t end = instruction - 1;
  for (const Loop& inner : loops) {
    const bool is_within = inner.first > loop.first && inner.last <= loop.last;
    if (is_within && inner.contains(instruction)) end = std::max(end, inner.last);
  }
  return end;
}

LoopCost cost_of(const std::vector<Instruction>& code, const std::vector<Loop>& loops, const Loop& loop) {
  LoopCost cost;
  for (std::size_t i = loop.first; i <= loop.last; ++i) {
    const std::size_t end = end_of_inner(loops, loop, i);
    if (end == i - 1) {
      ++cost.instructions;
      cost.fmas += code[i].is(Operation::kFfma) || code[i].is(Operation::kDfma) ? 1 : 0;
    } else {
      i = end;
    }
  }
  return cost;
}

}  // namespace

LoopCost loop_cost(const CubinKernel& kernel) {
  LoopCost most;
  const std::vector<Loop> loops = loops_of(kernel.instructions, kernel.capability);
  for (const Loop& loop : loops) {
    const LoopCost cost = cost_of(kernel.instructions, loops, loop);
    if (std::tie(cost.fmas, cost.instructions) > std::tie(most.fmas, most.instructions)) most = cost;
  }
  return most;
}

int resident_warps(const CubinKernel& kernel, int warps) {
  // Compute capability 8.0 and 9.0: a quarter of a multiprocessor has 16,384 registers, dealt out to warps eight a
  // thread at a time.
  constexpr int kQuarters = 4, kRegisters = 16384, kMostWarps = 64, kMostBlocks = 32;
  const int of_warp = pieces(std::max(kernel.registers, 1), 8) * 8 * kWarpSize;
  const int room = std::min(kMostWarps, kQuarters * (kRegisters / of_warp));
  return std::min(kMostBlocks, room / warps) * warps;
}

int warps_of_largest_block(const CubinKernel& kernel) {
  return kernel.most_threads > 0 ? pieces(kernel.most_threads, kWarpSize) : 8;
}

}  // namespace lockstep::machine_code
