// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A link of a node has the network's bandwidth and each link a share of the latency; what the ends cost stands
/// before and behind them as links that are never full.
#include "simulation/fat_tree.hpp"

#include <limits>
#include <string>
#include <utility>

namespace lockstep {
namespace {

namespace s4u = simgrid::s4u;

constexpr double kNeverFull = 1e15;  // bytes a second
constexpr double kNodeSpeed = 1e9;   // never used: computing is a matter of seconds here

s4u::FatTreeParams shape(const Cluster& cluster) {
  const auto leaf = static_cast<unsigned>(cluster.leaf_size()),
             leaves = static_cast<unsigned>(cluster.leaves());
  if (leaves == 1) return {1, {leaf}, {1}, {1}};
  return {2, {leaf, leaves}, {1, leaf}, {1, 1}};
}

}  // namespace

std::vector<s4u::Host*> make_fat_tree(const Cluster& cluster) {
  const NetworkConstants& network = cluster.network;
  std::vector<s4u::Host*> nodes;
  const auto add_node = [&nodes](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    nodes.push_back(zone->create_host("node" + std::to_string(id), kNodeSpeed)->seal());
    return std::make_pair(nodes.back()->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const auto add_link = [](const char* name, double bandwidth, double latency) {
    return [=](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
      s4u::Link* link = zone->create_link(name + std::to_string(id), bandwidth);
      return link->set_latency(latency)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->seal();
    };
  };
  s4u::create_fatTree_zone("cluster", nullptr, shape(cluster),
                           {add_node, add_link("inside", network.local_bandwidth, network.local_latency),
                            add_link("end", kNeverFull, network.latency / 2)},
                           network.bandwidth, network.link_latency, s4u::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return nodes;
}

}  // namespace lockstep
