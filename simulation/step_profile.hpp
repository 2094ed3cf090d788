// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank computes in a step, and when which gradients are there: from the network's arithmetic at a given
/// speed, as `bucket_bytes: auto` reckons it.
#pragma once

#include "comm/bucket_plan.hpp"
#include "models/network.hpp"

#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// Computing without a look at messages; behind it, ranges that are done leave, and messages are polled.
struct Stretch {
  double seconds = 0;
  std::optional<std::size_t> done;  ///< the range that it completes, in backward order
};

struct StepProfile {
  std::vector<GradientRange> ranges;  ///< in backward order, of the last grain
  std::vector<Stretch> stretches;
  double computing() const;  ///< seconds of all stretches
};

/// @param grains  of this rank; only the last one's gradients can be on their way while it computes
StepProfile profile_step(const Network& network, int grain, int grains, double flops_per_second);

/// The same step with the times that were measured: stretches up to the completion of each range are stretched alike.
/// @param done  seconds from the step's start to the completion of each range; ascending, as many as there are ranges
StepProfile with_measured(StepProfile profile, std::span<const double> done);

}  // namespace lockstep
