// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows in fixed columns.
#include "common/text_layout.hpp"
#include "tests/scaling/scenario.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

std::string buckets_text(const Scenario& scenario) {
  const std::size_t count = scenario.plan.buckets.size();
  return scenario.buckets_asked == 0 ? fmt::format("auto: {}", count) : fmt::format("{}", count);
}

std::string row(const Scenario& s) {
  return fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9.1f} {:>10.1f} {:>5.1f} % {:>9.2f} {:>+7.1f} %",
                     s.cluster.ranks, s.cluster.nodes(), name_of(s.kind), buckets_text(s),
                     s.simulated.total * 1e6, s.simulated.exposed * 1e6, 100 * s.efficiency(),
                     s.simulated.exposed / s.bound, 100 * s.deviation());
}

}  // namespace

std::vector<std::string> scaling_table(std::span<const Scenario> scenarios) {
  std::vector<std::string> lines{fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9} {:>10} {:>7} {:>9} {:>9}",
                                             "ranks", "nodes", "reduce", "buckets", "step us", "exposed us",
                                             "effic.", "x bound", "model off")};
  double largest = 0, most = 0;
  for (const Scenario& scenario : scenarios) {
    lines.push_back(row(scenario));
    largest = std::max(largest, std::abs(scenario.deviation()));
    most = std::max(most, scenario.simulated.exposed / scenario.bound);
  }
  lines.push_back(
      fmt::format("the model's step is off the simulated one by at most {:.1f} %", 100 * largest));
  lines.push_back(fmt::format("at most {:.2f} times the bound of one all-reduce is exposed", most));
  return lines;
}

}  // namespace lockstep
