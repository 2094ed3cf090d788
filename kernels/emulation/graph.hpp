// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a stream records instead of running it: operations and which of them must come before which.
#pragma once

#include "kernels/emulation/order.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep::emulation {

/// A piece of work with its arguments, by value.
using Operation = std::function<void()>;

class OperationGraph {
 public:
  using Node = std::size_t;
  /// Nodes that a later one must wait for.
  using Frontier = std::vector<Node>;

  Node add(Operation operation, Frontier after);
  std::size_t size() const noexcept { return nodes_.size(); }
  /// Runs all operations, each after those it waits for; under a seed, in a random one of such orders.
  void run(Order& order) const;
  /// Whether all nodes are in the frontier or come before it.
  bool covered_by(const Frontier& frontier) const;

 private:
  struct Step {
    Operation operation;
    Frontier after;
  };
  std::vector<Step> nodes_;
};

}  // namespace lockstep::emulation
