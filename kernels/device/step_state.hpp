// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a training step on a device knows of its place in the run. It lives in device memory, where kernels
/// read and advance it, so that a captured step can be launched again and again with the same arguments.
#pragma once

#include <cstdint>

namespace lockstep {

/// What every rank must know after a step besides the gradient, in this order, as comm/step_counters.hpp:
/// samples, loss in units of 2^-32 nats, correct answers, stop requests, numbers refused by an exact sum.
enum StepCounter : int { kSamples, kLoss, kCorrect, kStopRequests, kNotFinite, kStepCounters };

/// The loss as fixed point, in units of 2^-32 nats: sums up to 10^9 nats, and each grain is rounded by
/// 10^-10.
inline constexpr double kLossScale = 4294967296.0;

/// The largest |loss| of a grain such that `grains` of them cannot overflow: 2^62 / 2^32 / grains.
constexpr double loss_limit(std::int64_t grains) {
  return 1073741824.0 / static_cast<double>(grains < 1 ? 1 : grains);
}

/// The buffer of exact sums holds the counters in its first elements and the arena behind them, so that the
/// bucket that leaves last, the one at the start of the arena, carries the counters.
inline constexpr int kCounterSlots = 8;

/// The host writes all of it before a series of steps and reads it after them.
struct StepState {
  std::int64_t step_in_epoch = 0;         ///< of the next step, from 0
  std::int64_t steps_done = 0;            ///< since the host wrote this
  std::int64_t last[kCounterSlots] = {};  ///< counters of the last step done, summed over all ranks
  std::int64_t sums[kCounterSlots] = {};  ///< of all steps done, added up
  float learning_rate = 0;
  std::uint32_t step = 0;            ///< optimiser steps taken before the next one; keys dropout
  std::uint32_t stop_requested = 0;  ///< this rank's wish, counted in every step
  std::uint32_t halted = 0;       ///< set by a step that is not finite: it and all later steps change nothing
  std::uint32_t blocks_done = 0;  ///< the update's own: its last block advances this state
  std::uint32_t padding = 0;
};

}  // namespace lockstep
