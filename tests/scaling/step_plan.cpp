// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Written and read by the same version of the same build.
#include "tests/scaling/step_plan.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/ranges.h>

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
                                  {"spread", plan.spread}});
}

StepPlan step_plan_from(const std::string& text) {
  const auto json = parse_json(text);
  StepPlan plan{.cluster = json.at("cluster").get<Cluster>(),
                .kind = reduce_named(json.at("kind").get<std::string>()),
                .stretches = {},
                .buckets = json.at("buckets").get<std::vector<PlannedBucket>>(),
                .spread = json.at("spread").get<double>()};
  for (const auto& one : json.at("stretches")) {
    plan.stretches.push_back({one.at("seconds").get<double>(), {}});
    if (one.contains("done")) plan.stretches.back().done = one["done"].get<std::size_t>();
  }
  return plan;
}

// The others are made of the trainer's schedule: ranks get other names in it, or only some take part.

namespace {

/// Bits in reverse order, among so many ranks; those beyond a power of two stay who they are.
int mirrored(int rank, int ranks) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  if (rank >= power) return rank;
  int result = 0;
  for (int bit = 1; bit < power; bit *= 2) result = 2 * result + ((rank & bit) != 0 ? 1 : 0);
  return result;
}

std::vector<Exchange> far_first(const Cluster& cluster, int rank, std::size_t count, std::size_t bytes) {
  auto rounds = all_reduce_schedule(mirrored(rank, cluster.ranks), cluster.ranks, count, bytes, 1);
  for (Exchange& round : rounds) {
    for (int* peer : {&round.to, &round.from}) *peer = mirrored(*peer, cluster.ranks);
  }
  return rounds;
}

/// Up a tree of the node's ranks, across, and down again.
std::vector<Exchange> by_leaders(const Cluster& cluster, int rank, std::size_t count, std::size_t bytes) {
  const int node = cluster.node_of(rank), first = node * cluster.ranks_per_node, local = rank - first;
  const int here = std::min(cluster.ranks_per_node, cluster.ranks - first);
  const Slice all{0, count};
  std::vector<Exchange> rounds, down;
  int mask = 1;
  for (; mask < here && (local & mask) == 0; mask *= 2) {
    if (local + mask >= here) continue;
    rounds.push_back({rank + mask, rank + mask, {}, all, true, false, rounds.empty()});
    down.push_back({rank + mask, rank + mask, all, {}});
  }
  if (local > 0) {
    rounds.push_back({rank - mask, rank - mask, all, {}, false, rounds.empty()});
    rounds.push_back({rank - mask, rank - mask, {}, all});
  } else {
    const bool alone = rounds.empty();
    for (Exchange round : all_reduce_schedule(node, cluster.nodes(), count, bytes, 1)) {
      round.to *= cluster.ranks_per_node;
      round.from *= cluster.ranks_per_node;
      round.own = round.own && alone;
      round.first = round.first && alone;
      rounds.push_back(round);
    }
  }
  rounds.insert(rounds.end(), down.rbegin(), down.rend());
  return rounds;
}

}  // namespace

std::string_view name_of(ReduceKind kind) {
  return kReduceNames[static_cast<std::size_t>(kind)];
}

ReduceKind reduce_named(const std::string& name) {
  const auto* const found = std::ranges::find(kReduceNames, name);
  if (found == std::end(kReduceNames)) {
    throw UsageError(fmt::format("there is no all-reduce '{}' to simulate; there are {}", name,
                                 fmt::join(kReduceNames, ", ")));
  }
  return static_cast<ReduceKind>(found - kReduceNames);
}

std::vector<Exchange> reduce_rounds(ReduceKind kind, const Cluster& cluster, int rank, std::size_t count,
                                    std::size_t bytes_per_element) {
  switch (kind) {
    case ReduceKind::kFarFirst:
      return far_first(cluster, rank, count, bytes_per_element);
    case ReduceKind::kLeaders:
      return count > 0 ? by_leaders(cluster, rank, count, bytes_per_element) : std::vector<Exchange>();
    default:
      return all_reduce_schedule(rank, cluster.ranks, count, bytes_per_element, cluster.ranks_per_node);
  }
}

}  // namespace lockstep
