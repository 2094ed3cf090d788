// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss since it was last printed: exact, so that neither ranks nor a resume in between change a digit.
#pragma once

#include "comm/step_counters.hpp"
#include "kernels/device/step_state.hpp"
#include "kernels/numerics/wide_sum.hpp"

#include <cstdint>

namespace lockstep {

/// Plain numbers, so that it can be broadcast.
struct LossWindow {
  std::int64_t steps = 0, samples = 0;
  WideSum loss_units;  ///< sum over samples, in units of 2^-32 nats

  double mean() const { return loss_units.value() / kLossScale / static_cast<double>(samples); }
};

}  // namespace lockstep
