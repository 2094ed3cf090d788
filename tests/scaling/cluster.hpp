// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The machines that a simulation supposes: nodes of several ranks under a fat tree of two levels of switches.
#pragma once

#include <algorithm>

namespace lockstep {

/// What a message costs: a latency, then its bytes over a bandwidth. Seconds, bytes a second.
struct NetworkConstants {
  double latency = 1.93e-6;       ///< of a message between two nodes, both ends' software included
  double link_latency = 0.1e-6;   ///< more for each of the links on its way
  double bandwidth = 12.5e9;      ///< of each link, in each direction; a node has one for all its ranks
  double local_latency = 0.5e-6;  ///< of a message between two ranks of a node
  double local_bandwidth = 16e9;  ///< of each pair of them
  double sum_bandwidth = 20e9;    ///< of adding up what arrived, counted in bytes of it
};

struct Cluster {
  int ranks = 1;
  int ranks_per_node = 8;
  int nodes_per_leaf = 16;  ///< under one switch
  NetworkConstants network;

  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  int node_of(int rank) const { return rank / ranks_per_node; }
  /// Nodes under each switch of the lower level; there are as many switches above them.
  int leaf_size() const { return std::min(nodes_per_leaf, nodes()); }
  int leaves() const { return (nodes() + leaf_size() - 1) / leaf_size(); }
  int leaf_of(int rank) const { return node_of(rank) / leaf_size(); }
  /// Between two ranks; 0 within a node.
  int links_between(int a, int b) const {
    if (node_of(a) == node_of(b)) return 0;
    return leaf_of(a) == leaf_of(b) ? 2 : 4;
  }
};

}  // namespace lockstep
