// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the name in the job file to a strategy at work; a row of strategies.cpp for each.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/verify/rank_checks.hpp"

#include <memory>
#include <string_view>

namespace lockstep {

struct StrategyEntry {
  std::string_view name;  ///< a name in trainer/config/job_values.hpp
  const StrategySetup& setup;
  /// Collective. Borrows everything, which set_up() made with `setup`.
  std::unique_ptr<ParallelStrategy> (*make)(const JobSetup& setup, Communicator& comm);
};

/// The one that the job names.
const StrategyEntry& find_strategy(const Job& job);

/// The strategy `data` on the setup's device, as the catalogue makes it.
std::unique_ptr<ParallelStrategy> make_data_parallel(const JobSetup& setup, Communicator& comm);

/// Makes ranks check each other in each step, as the options say. Borrows all.
std::shared_ptr<RankChecks> check_ranks(ParallelStrategy& strategy, const JobSetup& setup,
                                        Communicator& comm);

/// Every rank has some layers (pipeline_checks.cpp).
extern const StrategySetup kPipelineSetup;

}  // namespace lockstep
