// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names the tensors in which it began, the largest weight, and the keys that help.
#include "trainer/engine/step_failure.hpp"

#include "common/text/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {
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
  return fmt::format("step {}: {}; {}. What helps: {}. Nothing of this step was kept", step,
                     what_is_wrong(failure, samples, layout), largest_weight(layout, weights), help);
}

}  // namespace lockstep
