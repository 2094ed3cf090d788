// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Series are as long as requests to stop may wait.
#include "trainer/training/step_series.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kSeriesSeconds = 0.5;
/// Ranks agree after every series while it is shorter than the longest, and then after so many. That costs a message.
constexpr std::int64_t kSeriesBetweenAgreements = 16;

}  // namespace

StepPosition after(const StepPosition& position, std::int64_t count) {
  return {position.epoch, position.step_in_epoch + count, position.global_step + count};
}

void StepSeries::add(std::int64_t count, const StepTotals& totals, const StepTotals& of_last) {
  steps += count;
  samples += totals.samples;
  correct += totals.correct;
  loss_units += totals.loss_units;
  last = of_last;
}

void SeriesLength::took(std::int64_t steps, double seconds, Communicator& comm) {
  if (steps_ == longest_ && ++series_ % kSeriesBetweenAgreements != 0) return;
  std::int64_t nanoseconds = std::llround(seconds * 1e9 / static_cast<double>(steps));
  if (comm.size() > 1) comm.all_reduce(std::span(&nanoseconds, 1));
  const double step = static_cast<double>(std::max<std::int64_t>(nanoseconds, 1)) * 1e-9 / comm.size();
  const double in_time = std::min(kSeriesSeconds / step, static_cast<double>(longest_));
  steps_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(in_time), 1, std::min(longest_, 2 * steps_));
}

// Names the tensors in which it began, the largest weight, and the keys that help.

namespace {

std::string what_is_wrong(const StepFailure& failure, std::int64_t samples, const ParameterLayout& layout) {
  std::string text;
  if (failure.losses > 0)
    text = fmt::format("the loss of {} of {}", with_thousands(failure.losses), counted(samples, "sample"));
  if (failure.tensor != StepFailure::kNoTensor)
    text += fmt::format("{}the gradient of {}", text.empty() ? "" : " and ",
                        layout.parameters[failure.tensor].name);
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
                         ? "look at {mean} and {deviation} (larger inputs need a larger std) and at "
                           "{initial_weights}"
                         : "lower {learning_rate}, raise {deviation} if inputs are large, or use a smaller "
                           "{global_batch}";
  return fmt::format("step {}: {}; {}. Try this: {}. This step changed nothing", step,
                     what_is_wrong(failure, samples, layout), largest_weight(layout, weights), advice(help));
}

}  // namespace lockstep
