// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Too large: again in larger units. Too coarse: again in finer ones. Not finite: never again.
#include "trainer/engine/step_trial.hpp"

#include <limits>

namespace lockstep {

StepTrial::StepTrial(GradientUnits& units, std::int64_t global_step)
    : units_(units),
      global_step_(global_step),
      may_refine_(units.is_refined_at(global_step)),
      raised_(units.tensors()) {}

StepTrial::Verdict StepTrial::judge(const StepTotals& totals, std::span<const TensorRefusals> refusals,
                                    const std::function<std::vector<double>()>& largest_sums) {
  if (totals.refused > 0) {
    std::int64_t too_large = 0;
    for (std::size_t i = 0; i < refusals.size(); ++i) {
      too_large += refusals[i].too_large;
      failure_.terms += refusals[i].not_finite;
      if (refusals[i].too_large > 0) raised_[i] = true;
      if (refusals[i].not_finite > 0) failure_.tensor = i;
    }
    failure_.losses = totals.refused - too_large - failure_.terms;
    if (failure_.losses > 0 || failure_.terms > 0) return Verdict::kFail;
    units_.raise(refusals, global_step_);
    return Verdict::kRepeat;
  }
  if (!may_refine_ || !largest_sums) return Verdict::kTake;
  std::vector<double> largest = largest_sums();
  for (std::size_t i = 0; i < largest.size(); ++i) {
    // Larger and smaller in turns would never end.
    if (raised_[i]) largest[i] = std::numeric_limits<double>::infinity();
  }
  return units_.refine(largest, global_step_) ? Verdict::kRepeat : Verdict::kTake;
}

}  // namespace lockstep
