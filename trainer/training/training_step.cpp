// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Too large: again in larger units. Too coarse: again in finer ones. Not finite: never again.
#include "trainer/training/training_step.hpp"

#include "common/text_layout.hpp"
#include "trainer/training/step_observer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr double kSeriesSeconds = 0.5;
/// Ranks agree after every series while it is shorter than the longest, and then after so many. That costs a message.
constexpr std::int64_t kSeriesBetweenAgreements = 16;

StepTrial::Outcome decide(StepWork& work, StepTrial& trial, const StepSums& sums, Timeline* timeline) {
  const TimeSpan span(timeline, Work::kDeciding);
  if (!work.has_units()) return trial.decide(sums.totals, sums.refusals, nullptr);
  return trial.decide(
      sums.totals, sums.refusals, [&] { return work.largest_sums(); },
      [&] { return work.foreseen_refusals(); });
}

}  // namespace

StepPosition after(const StepPosition& position, std::int64_t count) {
  return {position.epoch, position.step_in_epoch + count, position.global_step + count};
}

void StepSeries::add(const StepTotals& step) {
  ++steps;
  samples += step.samples;
  correct += step.correct;
  loss_units += step.loss_units;
  last = step;
}

void SeriesLength::took(std::int64_t steps, double seconds, Communicator& comm) {
  if (steps_ == longest_ && ++series_ % kSeriesBetweenAgreements != 0) return;
  std::int64_t nanoseconds = std::llround(seconds * 1e9 / static_cast<double>(steps));
  if (comm.size() > 1) comm.all_reduce(std::span(&nanoseconds, 1));
  const double step = static_cast<double>(std::max<std::int64_t>(nanoseconds, 1)) * 1e-9 / comm.size();
  const double in_time = std::min(kSeriesSeconds / step, static_cast<double>(longest_));
  steps_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(in_time), 1, std::min(longest_, 2 * steps_));
}

void take_step(StepWork& work, GradientUnits& units, StepObserver& observer, Timeline* timeline,
               StepSeries& series) {
  const std::int64_t global_step = work.position().global_step;
  const TimeSpan step(timeline, Work::kStep, {}, global_step + 1);
  StepTrial trial(units, global_step);
  auto outcome = StepTrial::Outcome::kRepeat;
  for (std::int64_t attempt = 1; outcome == StepTrial::Outcome::kRepeat; ++attempt) {
    StepSums sums;
    {
      const TimeSpan span(timeline, Work::kAttempt, {}, attempt);
      sums = work.reduce();
    }
    outcome = decide(work, trial, sums, timeline);
    while (outcome == StepTrial::Outcome::kRepeat && work.sum_again())
      outcome = decide(work, trial, sums, timeline);
    if (outcome == StepTrial::Outcome::kFail) {
      series.last = sums.totals;
      series.failure = trial.failure();
    } else if (outcome == StepTrial::Outcome::kTake) {
      observer.before_update(work);
      const TimeSpan update(timeline, Work::kUpdate);
      work.take(sums.totals);
      series.add(sums.totals);
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

// Names the tensors in which it began, the largest weight, and the keys that help.

namespace {

std::string what_is_wrong(const StepFailure& failure, std::int64_t samples, const ParameterLayout& layout) {
  std::string text;
  if (failure.losses > 0) {
    text = fmt::format("the loss of {} of {}", with_thousands(failure.losses), counted(samples, "sample"));
  }
  if (failure.tensor != StepFailure::kNoTensor) {
    text += fmt::format("{}the gradient of {}", text.empty() ? "" : " and ",
                        layout.parameters[failure.tensor].name);
  }
  return text + (failure.losses > 0 && failure.terms > 0 ? " are" : " is") + " NaN or infinite";
}

/// The tensor with the largest |weight|; one that is not finite counts as the largest.
std::string largest_weight(const ParameterLayout& layout, std::span<const float> weights) {
  float largest = -1;
  const std::vector<Parameter> tensors = layout.tensors();
  const Parameter* where = nullptr;
  for (const Parameter& parameter : tensors) {
    for (const float weight : weights.subspan(parameter.offset, parameter.size)) {
      if (std::abs(weight) <= largest) continue;
      largest = std::abs(weight);
      where = &parameter;
      if (!std::isfinite(weight)) return fmt::format("{} has a weight of {}", where->name, weight);
    }
  }
  return fmt::format("the largest weight before it is {:.3g}, in {}", largest, where->name);
}

}  // namespace

std::string describe_failure(const StepFailure& failure, std::int64_t samples, std::int64_t step,
                             const ParameterLayout& layout, std::span<const float> weights) {
  const char* help = step == 1
                         ? "look at data.mean and data.std (larger inputs need a larger std) and at "
                           "train.initial_weights"
                         : "lower train.optimizer.lr, raise data.std if inputs are large, or use a smaller "
                           "data.global_batch";
  return fmt::format("step {}: {}; {}. Try this: {}. This step changed nothing", step,
                     what_is_wrong(failure, samples, layout), largest_weight(layout, weights), help);
}

}  // namespace lockstep
