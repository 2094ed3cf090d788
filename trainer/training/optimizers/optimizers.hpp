// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of optimisers, which move weights.
#pragma once

#include "kernels/optimizers/update_rule.hpp"
#include "trainer/training/optimizers/schedule.hpp"
#include "trainer/training/optimizers/sections.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A member of the catalogue. It says what the job file calls it, which keys it has, and what it makes of them.
struct OptimizerKind {
  std::string_view name;
  std::vector<MemberKey> keys;
  UpdateRule (*rule)(const OptimizerSection&);
  /// Optimiser state: one buffer of arena order each, all zeros at the start, in the order of the rule's buffers.
  /// Checkpoints hold them by these names.
  std::vector<std::string> (*buffers)(const OptimizerSection&);
  /// Values for the rule at a step.
  /// @param step  optimiser steps taken before this one
  StepScalars (*scalars)(const OptimizerSection&, const ScheduledValues& now, std::int64_t step);
  /// Complaint about keys of the section that do not fit together, or nothing.
  std::optional<KeyComplaint> (*check)(const OptimizerSection&) = nullptr;
  bool decay_has_rate = false;  ///< the rule is told the weight decay times the rate
};

/// All of them: trainer/training/optimizers/optimizers.cpp.
const std::vector<OptimizerKind>& optimizer_kinds();

/// The one that the section names.
const OptimizerKind& find_optimizer(const OptimizerSection& section);

}  // namespace lockstep
