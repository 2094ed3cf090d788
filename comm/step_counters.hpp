// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The trailing elements of the last bucket: what every rank must know after a step, besides the gradient.
#pragma once

#include "comm/gradient_reducer.hpp"
#include "kernels/device/step_state.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// One rank's or all ranks' sums; the element-wise sum of two of these is the one of both.
struct StepCounters {
  std::array<std::int64_t, kStepCounters> values{};  ///< by StepCounter

  StepTotals totals() const;
};

/// What a grain's loss adds to the counters. Those below the limit are one counter's, with the rounding that
/// they always had.
/// @param narrow_limit  narrow_loss_limit() of the global batch's grains
StepCounters loss_counters(const LossSums& sums, int samples, double narrow_limit);

/// How many fp32 elements carry the counters exactly: six digits of 12 bits for each, whose sums over up to
/// 4,096 ranks are below 2^24 and so exact in fp32, in any order.
inline constexpr std::size_t kDigits = 6;
inline constexpr std::size_t kMostRanksInFp32 = 4096;
inline constexpr std::size_t kCounterFloats = kStepCounters * kDigits;

/// As elements of an int64 all-reduce, kStepCounters of them.
void encode(const StepCounters& counters, std::span<std::int64_t> elements);
StepCounters decode(std::span<const std::int64_t> elements);

/// As elements of an fp32 all-reduce, kCounterFloats of them.
void encode(const StepCounters& counters, std::span<float> elements);
StepCounters decode(std::span<const float> elements);

}  // namespace lockstep
