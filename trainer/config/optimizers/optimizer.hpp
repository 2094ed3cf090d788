// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What an optimiser is to the rest of the program: a rule of the kernels, the names of what it remembers,
/// and what the rule is told at each step.
#pragma once

#include "kernels/optimizers/update_rule.hpp"
#include "trainer/config/optimizers/sections.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a schedule decides for one step.
struct ScheduledValues {
  double lr = 0;
  /// Nothing: as the job has it. WeightUpdate hands on none to an optimiser whose momentum is 0.
  std::optional<double> momentum = {};
};

/// A member of the catalogue: what the job file calls it, which keys it has, and what it makes of them.
struct OptimizerKind {
  std::string_view name;
  std::vector<MemberKey> keys;
  UpdateRule (*rule)(const OptimizerSection&);
  /// What it remembers: one buffer of arena order each, all zeros at the start, in the order of the rule's
  /// buffers. Checkpoints hold them by these names.
  std::vector<std::string> (*buffers)(const OptimizerSection&);
  /// What the rule is told at a step.
  /// @param step  optimiser steps taken before this one
  StepScalars (*scalars)(const OptimizerSection&, const ScheduledValues& now, std::int64_t step);
  /// What does not fit together in the section, or nothing.
  std::optional<KeyComplaint> (*check)(const OptimizerSection&) = nullptr;
  bool decay_has_rate = false;  ///< the rule is told the weight decay times the rate
};

/// All of them: trainer/config/optimizers/optimizers.cpp.
const std::vector<OptimizerKind>& optimizer_kinds();

/// The one that the section names.
const OptimizerKind& find_optimizer(const OptimizerSection& section);

}  // namespace lockstep
