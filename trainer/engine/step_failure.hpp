// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a person reads when a step cannot be taken.
#pragma once

#include "models/arena.hpp"
#include "trainer/engine/step_trial.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// One line: the step, what is NaN or infinite in it, the largest weight before it, and what helps.
///
/// @param samples  of the step
/// @param step     counted from 1
/// @param weights  before the step, arena order
std::string describe_failure(const StepFailure& failure, std::int64_t samples, std::int64_t step,
                             const ParameterLayout& layout, std::span<const float> weights);

}  // namespace lockstep
