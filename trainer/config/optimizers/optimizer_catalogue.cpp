// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The list of all optimisers.
#include "common/error.hpp"
#include "trainer/config/optimizers/optimizer.hpp"

#include <algorithm>

namespace lockstep {

OptimizerKind sgd_kind();
OptimizerKind adam_kind();
OptimizerKind adamw_kind();
OptimizerKind rmsprop_kind();
OptimizerKind lars_kind();

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> kinds = {sgd_kind(), adam_kind(), adamw_kind(), rmsprop_kind(),
                                                   lars_kind()};
  return kinds;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSection& section) {
  const auto& kinds = optimizer_kinds();
  const auto kind = std::ranges::find(kinds, section.kind, &OptimizerKind::name);
  LOCKSTEP_CHECK(kind != kinds.end());
  return kind->make(section);
}

}  // namespace lockstep
