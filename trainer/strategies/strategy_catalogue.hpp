// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the name in the job file to a strategy at work.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/strategy.hpp"

#include <memory>
#include <string_view>

namespace lockstep {

struct StrategyEntry {
  std::string_view name;  ///< of trainer/config/strategy_kinds.hpp
  const StrategySetup& setup;
  /// Collective. Borrows everything, which set_up() made with `setup`.
  std::unique_ptr<ParallelStrategy> (*make)(const Job& job, const JobSetup& setup, Communicator& comm);
};

/// The one that the job names.
const StrategyEntry& find_strategy(const Job& job);

}  // namespace lockstep
