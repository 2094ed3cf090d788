// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Operations run in any order that their dependencies allow.
#include "kernels/emulation/graph.hpp"

#include <utility>

namespace lockstep::emulation {

OperationGraph::Node OperationGraph::add(Operation operation, Frontier after) {
  nodes_.push_back({std::move(operation), std::move(after)});
  return nodes_.size() - 1;
}

void OperationGraph::run(Order& order) const {
  std::vector<std::size_t> missing(nodes_.size());
  std::vector<std::vector<Node>> followers(nodes_.size());
  std::vector<Node> ready;
  for (Node node = 0; node < nodes_.size(); ++node) {
    missing[node] = nodes_[node].after.size();
    for (const Node before : nodes_[node].after) followers[before].push_back(node);
    if (missing[node] == 0) ready.push_back(node);
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    std::swap(ready[next], ready[next + order.draw(ready.size() - next)]);
    nodes_[ready[next]].operation();
    for (const Node follower : followers[ready[next]])
      if (--missing[follower] == 0) ready.push_back(follower);
  }
}

bool OperationGraph::covered_by(const Frontier& frontier) const {
  std::vector<bool> covered(nodes_.size());
  for (const Node node : frontier) covered[node] = true;
  for (Node node = nodes_.size(); node-- > 0;)
    if (covered[node])
      for (const Node before : nodes_[node].after) covered[before] = true;
  for (const bool one : covered)
    if (!one) return false;
  return true;
}

}  // namespace lockstep::emulation
