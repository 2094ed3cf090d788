// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Properties of a rule that are known without computing with it.
#include "kernels/optimizers/update_rule.hpp"

#include "kernels/optimizers/rule_steps.hpp"

namespace lockstep {
namespace {

#define LOCKSTEP_RULE inline
#include "kernels/optimizers/rules_inl.hpp"

}  // namespace

bool uses_norms(UpdateRule rule) {
  return visit_rule(rule, [](auto which) { return kUsesNorms<decltype(which)>; });
}

int buffers_of(UpdateRule rule) {
  return visit_rule(rule, [](auto which) { return decltype(which)::kBuffers; });
}

}  // namespace lockstep
