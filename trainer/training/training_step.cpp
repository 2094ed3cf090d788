// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Too large: again in larger units. Too coarse: again in finer ones. Not finite: never again.
#include "trainer/training/training_step.hpp"

#include "trainer/training/step_observer.hpp"

#include <limits>

namespace lockstep {

void take_step(StepWork& work, GradientUnits& units, StepObserver& observer, Timeline* timeline,
               StepSeries& series) {
  const std::int64_t global_step = work.position().global_step;
  const TimeSpan step(timeline, Work::kStep, {}, global_step + 1);
  StepTrial trial(units, global_step);
  const auto decide = [&](const StepSums& sums) {
    const TimeSpan span(timeline, Work::kDeciding);
    if (!work.has_units()) return trial.decide(sums.totals, sums.refusals, nullptr);
    return trial.decide(
        sums.totals, sums.refusals, [&] { return work.largest_sums(); },
        [&] { return work.foreseen_refusals(); });
  };
  auto outcome = StepTrial::Outcome::kRepeat;
  for (std::int64_t attempt = 1; outcome == StepTrial::Outcome::kRepeat; ++attempt) {
    StepSums sums;
    {
      const TimeSpan span(timeline, Work::kAttempt, {}, attempt);
      sums = work.reduce();
    }
    outcome = decide(sums);
    while (outcome == StepTrial::Outcome::kRepeat && work.sum_again()) outcome = decide(sums);
    if (outcome == StepTrial::Outcome::kFail) {
      series.last = sums.totals;
      series.failure = trial.failure();
    } else if (outcome == StepTrial::Outcome::kTake) {
      observer.before_update(work);
      const TimeSpan update(timeline, Work::kUpdate);
      work.take(sums.totals);
      series.add(1, sums.totals, sums.totals);
    }
  }
}

StepTrial::StepTrial(GradientUnits& units, std::int64_t global_step)
    : units_(units),
      global_step_(global_step),
      may_refine_(units.is_refined_at(global_step)),
      raised_(units.tensors()) {}

std::int64_t StepTrial::raise(std::span<const TensorRefusals> refusals) {
  std::int64_t too_large = 0;
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    too_large += refusals[i].too_large;
    if (refusals[i].too_large > 0) raised_[i] = true;
  }
  if (too_large > 0) units_.raise(refusals, global_step_);
  return too_large;
}

StepTrial::Outcome StepTrial::decide(const StepTotals& totals, std::span<const TensorRefusals> refusals,
                                     const LargestSums& largest_sums, const ForeseenRefusals& foreseen) {
  if (totals.refused > 0) {
    std::int64_t too_large = 0;
    for (std::size_t i = 0; i < refusals.size(); ++i) {
      too_large += refusals[i].too_large;
      failure_.terms += refusals[i].not_finite;
      if (refusals[i].not_finite > 0) failure_.tensor = i;
    }
    failure_.losses = totals.refused - too_large - failure_.terms;
    if (failure_.losses > 0 || failure_.terms > 0) return Outcome::kFail;
    raise(refusals);
    return Outcome::kRepeat;
  }
  if (!may_refine_ || !largest_sums) return Outcome::kTake;
  std::vector<double> largest = largest_sums();
  for (std::size_t i = 0; i < largest.size(); ++i) {
    // Larger and smaller in turns would never end.
    if (raised_[i]) largest[i] = std::numeric_limits<double>::infinity();
  }
  if (!units_.refine(largest, global_step_)) return Outcome::kTake;
  while (foreseen && raise(foreseen()) > 0) {
  }
  return Outcome::kRepeat;
}

}  // namespace lockstep
