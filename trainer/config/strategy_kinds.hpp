// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parallel strategies by name, as far as a job file knows them: what they promise and which keys are
/// theirs. What they do is in trainer/strategies, a folder for each.
#pragma once

#include "trainer/optimizers/member.hpp"

#include <string_view>
#include <vector>

namespace lockstep {

struct StrategyKind {
  std::string_view name;
  /// Whether it ends in the weights of one rank, bit for bit, under `determinism: world`.
  bool same_bits = true;
  bool one_thread = false;  ///< each rank computes with one
  /// Each rank has samples of its own, so a batch may be given for each and cut in different ways.
  bool shares_batches = true;
  bool any_ranks = true;  ///< a run goes on on any number of ranks, not only on some
  bool one_host = false;  ///< all ranks are on one
  /// Keys of the section `parallel` that only this strategy has.
  std::vector<MemberKey> keys = {};
};

/// All that there are: a new one is a line here, and one in trainer/strategies/strategy_catalogue.cpp.
const std::vector<StrategyKind>& strategy_kinds();

/// @throws InternalError  there is none of that name
const StrategyKind& find_strategy_kind(std::string_view name);

}  // namespace lockstep
