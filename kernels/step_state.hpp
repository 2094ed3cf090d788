// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State of a training step on a device: its place in the run. It lives in device memory, where kernels
/// read and advance it, so that a captured step can be launched again and again with the same arguments.
#pragma once

#include "kernels/numerics/sums.hpp"
#include "kernels/optimizers/update_rule.hpp"

#include <cstdint>

namespace lockstep {

/// Numbers that every rank must know after a step besides the gradient, in this order. comm/reduce/gradient_reducer.hpp
/// lists them: samples, correct answers, stop requests, numbers that a sum could not take (losses that are not finite,
/// gradients beyond the limit of their format), the limbs of the loss.
enum StepCounter : int {
  kSamples,
  kCorrect,
  kStopRequests,
  kRefused,
  kLoss,
  kStepCounters = kLoss + kWideLimbs
};

/// A term below this goes into the first limb as it is, with any number of bits. `terms` of them cannot
/// overflow, being 2^62 / 2^32 / terms. Larger ones, which only networks have that went astray, are spread
/// over the limbs (wide_term).
constexpr double narrow_loss_limit(std::int64_t terms) {
  return 1073741824.0 / static_cast<double>(terms < 1 ? 1 : terms);
}

/// So many terms may be spread over limbs: 2^31 of 32 bits.
inline constexpr std::int64_t kMostLossTerms = std::int64_t{1} << 31;

/// The buffer of exact sums holds the counters in its first elements, then the arena. So the
/// bucket that leaves last, the one at the start of the arena, carries the counters.
inline constexpr int kCounterSlots = 12;
/// One of them, after the counters: the fingerprint of a rank's sums, while they travel (comm/reduce/sum_check.hpp).
inline constexpr int kFingerprintSlot = kStepCounters;
static_assert(kCounterSlots > kFingerprintSlot && kCounterSlots % 4 == 0);

/// Most steps of a series: between two writes by the host.
inline constexpr int kLongestSeries = 64;

/// The host writes all of it before a series of steps and reads it after them.
struct StepState {
  std::int64_t epoch = 0;                 ///< epoch of the steps ahead, from 0; keys what augmentation draws
  std::int64_t step_in_epoch = 0;         ///< number of the next step in its epoch, from 0
  std::int64_t steps_done = 0;            ///< since the host wrote this
  std::int64_t last[kCounterSlots] = {};  ///< counters of the last step done, summed over all ranks
  std::int64_t sums[kCounterSlots] = {};  ///< sums over all steps done
  StepScalars scalars;                    ///< scalars of the next step: what its update is told
  std::uint32_t step = 0;                 ///< optimiser steps done before the next one; keys dropout
  std::uint32_t stop_requested = 0;       ///< this rank's wish, counted in every step
  std::uint32_t halted = 0;  ///< set by a step that refused a number: it and all later steps change nothing
  std::uint32_t blocks_done = 0;           ///< used by the update alone: its last block advances this state
  StepScalars ahead[kLongestSeries] = {};  ///< scalars of the steps after the next: [i] once i + 1 are done
  float loss_scales[kLongestSeries] =
      {};  ///< LossRule::scale of the step once [i] are done, with class weights
};

}  // namespace lockstep
