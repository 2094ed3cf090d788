// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions that kernels call, with CUDA's names and meaning.
#pragma once

#include "kernels/emulation/block.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/warp.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
namespace lockstep::emulation {

// --- barriers of a block

inline void __syncthreads(const CallSite& call = CallSite::here()) {
  BlockRunner::here().barrier(call);
}
/// One thread runs at a time, and each sees what the others wrote.
inline void __threadfence() {}

// --- warps

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

inline unsigned __ballot_sync(unsigned mask, int predicate, const CallSite& call = CallSite::here()) {
  return static_cast<unsigned>(
      BlockRunner::here().exchange({WarpOp::kBallot, mask, 0, predicate != 0 ? 1U : 0U, call}));
}
inline void __syncwarp(unsigned mask = kAllLanes, const CallSite& call = CallSite::here()) {
  __ballot_sync(mask, 0, call);
}

// A return after the switch costs as much as the switch (block.cpp): none but that of exchange().

/// The value of lane `source`.
template <typename T>
[[gnu::always_inline]] inline T exchange_with(unsigned mask, T value, unsigned source, const CallSite& call) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  WarpRequest request{WarpOp::kShuffle, mask, source, 0, call};
  std::memcpy(&request.value, &value, sizeof value);
  const std::uint64_t answer = BlockRunner::here().exchange(request);
  std::memcpy(&value, &answer, sizeof value);
  return value;
}

template <typename T>
[[gnu::always_inline]] inline T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                                            const CallSite& call = CallSite::here()) {
  const unsigned segment = BlockRunner::here().lane() & ~static_cast<unsigned>(width - 1);
  return exchange_with(mask, value,
                       segment + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1)), call);
}
template <typename T>
[[gnu::always_inline]] inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                                 const CallSite& call = CallSite::here()) {
  const unsigned lane = BlockRunner::here().lane();
  const unsigned within = lane & static_cast<unsigned>(width - 1);
  return exchange_with(mask, value, within + delta < static_cast<unsigned>(width) ? lane + delta : lane,
                       call);
}
template <typename T>
[[gnu::always_inline]] inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                                                const CallSite& call = CallSite::here()) {
  const unsigned lane = BlockRunner::here().lane();
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  const unsigned segment_end = (lane | static_cast<unsigned>(width - 1)) + 1;
  return exchange_with(mask, value, source < segment_end ? source : lane, call);
}

// --- atomics: nothing else runs in between

inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return std::exchange(*address, *address + value);
}
inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return std::exchange(*address, *address + value);
}

// --- arithmetic

using std::max;
using std::min;

/// Rounds half to even; saturates, and NaN becomes the smallest number.
inline long long __double2ll_rn(double x) {
  using Limits = std::numeric_limits<long long>;
  constexpr double kBound = 9223372036854775808.0;  // 2^63
  if (!(x >= -kBound)) return Limits::min();
  return x >= kBound ? Limits::max() : std::llrint(x);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}

}  // namespace lockstep::emulation
// NOLINTEND(bugprone-reserved-identifier)
