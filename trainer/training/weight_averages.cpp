// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shares of a step: constant for an exponential average, one over the count for a mean of epochs' ends.
#include "trainer/training/weight_averages.hpp"

namespace lockstep {

WeightAverages::WeightAverages(const UpdateOptions& options, std::int64_t steps_per_epoch)
    : ema_(options.ema),
      first_end_(options.swa.from_epoch * steps_per_epoch),
      steps_per_epoch_(steps_per_epoch) {
  if (ema_ > 0) names_.emplace_back(kEmaBuffer);
  if (first_end_ > 0) names_.emplace_back(kSwaBuffer);
}

/// Computed in double, rounded once. With 1 / n of the distance the n-th weights count as much as those before.
float WeightAverages::share(std::size_t i, std::int64_t step) const {
  if (names_[i] == kEmaBuffer) return step == 0 ? 1 : share_of_each_step(i);
  const std::int64_t taken = step + 1;
  if (taken < first_end_ || taken % steps_per_epoch_ != 0) return 0;
  const std::int64_t ends = (taken - first_end_) / steps_per_epoch_ + 1;
  return static_cast<float>(1 / static_cast<double>(ends));
}

bool WeightAverages::exists(std::size_t i, std::int64_t steps) const {
  return names_[i] == kEmaBuffer ? steps > 0 : steps >= first_end_;
}

}  // namespace lockstep
