// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The catalogue.
#include "trainer/strategies/strategy_catalogue.hpp"

#include "common/error.hpp"
#include "trainer/strategies/data/data_parallel.hpp"
#include "trainer/strategies/hogwild/hogwild.hpp"
#include "trainer/strategies/pipeline/pipeline.hpp"
#include "trainer/strategies/pipeline/pipeline_setup.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

const std::array kStrategies{
    StrategyEntry{"data", kDataParallelSetup, make_data_parallel},
    StrategyEntry{"pipeline", kPipelineSetup, make_pipeline},
    StrategyEntry{"hogwild", kHogwildSetup, make_hogwild},
};

}  // namespace

const StrategyEntry& find_strategy(const Job& job) {
  const auto found = std::ranges::find(kStrategies, job.parallel.strategy, &StrategyEntry::name);
  LOCKSTEP_CHECK(found != kStrategies.end());
  return *found;
}

}  // namespace lockstep
