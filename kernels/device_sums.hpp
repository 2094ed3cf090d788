// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums that the ops of a device accumulate: exact gradients with their refusals, and the loss with its counters.
#pragma once

#include "kernels/numerics/sums.hpp"
#include "kernels/shapes.hpp"
#include "kernels/step_state.hpp"

#include <cstdint>

namespace lockstep {

/// Counters of terms that an exact sum cannot take: those with |term| >= limit, and NaN. Accumulates.
struct Refusals {
  std::int64_t* all = nullptr;  ///< all kinds and tensors: kRefused of the step's counters
  /// This tensor's: [0] finite ones, [1] NaN and infinite ones. May be null.
  std::int64_t* of_tensor = nullptr;
};
inline constexpr int kRefusalKinds = 2;

/// Destination of the gradient of one tensor. Accumulates.
struct ExactTarget {
  std::int64_t* sums = nullptr;
  ExactFormat format;
  Refusals refusals;
};

/// Destination of the gradients of a weight and its bias.
struct ExactGradient {
  ExactTarget weight, bias;
};

/// Samples whose loss is not finite are left out, and counted as kRefused.
struct LossTarget {
  const std::int32_t* labels = nullptr;  ///< [batch]
  std::int64_t* counters = nullptr;      ///< [kStepCounters], accumulates
  double narrow_limit = 0;               ///< nats, see narrow_loss_limit()
  /// Its stop_requested is added once to kStopRequests. It has the scale of a loss with class weights. May be null.
  const StepState* state = nullptr;
};

/// The loss of a pass's samples, where it is a part of the pass.
struct DeviceLoss {
  LossShape shape;
  LossTarget target;
};

}  // namespace lockstep
