// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Written and read by the same version of the same build.
#include "simulation/step_plan.hpp"

#include "common/text/json_text.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NetworkConstants, latency, link_latency, bandwidth, local_latency,
                                   local_bandwidth, sum_bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cluster, ranks, ranks_per_node, nodes_per_leaf, network)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedBucket, elements, last_range)

std::string to_text(const StepPlan& plan) {
  nlohmann::json stretches = nlohmann::json::array();
  for (const Stretch& stretch : plan.stretches) {
    nlohmann::json one{{"seconds", stretch.seconds}};
    if (stretch.done) one["done"] = *stretch.done;
    stretches.push_back(std::move(one));
  }
  return json_text(nlohmann::json{{"cluster", plan.cluster},
                                  {"kind", name_of(plan.kind)},
                                  {"stretches", std::move(stretches)},
                                  {"buckets", plan.buckets},
                                  {"steps", plan.steps}});
}

StepPlan step_plan_from(const std::string& text) {
  const auto json = parse_json(text);
  StepPlan plan{.cluster = json.at("cluster").get<Cluster>(),
                .kind = reduce_named(json.at("kind").get<std::string>()),
                .stretches = {},
                .buckets = json.at("buckets").get<std::vector<PlannedBucket>>(),
                .steps = json.at("steps").get<int>()};
  for (const auto& one : json.at("stretches")) {
    plan.stretches.push_back({one.at("seconds").get<double>(), {}});
    if (one.contains("done")) plan.stretches.back().done = one["done"].get<std::size_t>();
  }
  return plan;
}

}  // namespace lockstep
