// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The list.
#include "trainer/config/strategy_kinds.hpp"

#include "common/error.hpp"

#include <algorithm>

namespace lockstep {

const std::vector<StrategyKind>& strategy_kinds() {
  static const std::vector<StrategyKind> kinds = {
      {.name = "data"},
      {.name = "pipeline",
       .one_thread = true,
       .shares_batches = false,
       .any_ranks = false,
       .keys = {{"stages"}, {"placement"}, {"schedule"}}},
      {.name = "hogwild",
       .same_bits = false,
       .one_thread = true,
       .one_host = true,
       .keys = {{"count_lost_updates"}}},
  };
  return kinds;
}

const StrategyKind& find_strategy_kind(std::string_view name) {
  const auto found = std::ranges::find(strategy_kinds(), name, &StrategyKind::name);
  LOCKSTEP_CHECK(found != strategy_kinds().end());
  return *found;
}

}  // namespace lockstep
