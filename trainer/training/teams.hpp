// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Teams of ranks. A team computes a share of a batch and holds the whole network: it is one rank in data parallel
/// training, and the ranks of a pipeline otherwise. Results and state of two teams can be compared.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/training/fingerprints.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// One of the numbers by which teams are compared.
struct ComparedPart {
  std::string name;       ///< "the gradients of conv2.weight"; of a state a tensor: "conv2.weight"
  int member = 0;         ///< the rank of the team that answers for it
  bool arrived = false;   ///< from another member, which has a number of its own for what it sent
  std::string kind = {};  ///< the state's: "weights", "values of momentum"
};

/// This rank's place among them. Teams are of equal size, one after the other in the ranks of the run.
struct Teams {
  /// This rank and those at its place in the other teams, which hold the same. Null: no rank holds what another does.
  Communicator* peers = nullptr;
  Communicator* members = nullptr;  ///< ranks of this team; null: it is this rank
  std::vector<HeldTensor> held;     ///< by this rank
  std::vector<int> holders = {};    ///< the member that has each trained tensor; empty: each has all
  /// Names the fingerprints of a share, in the order in which its numbers follow from each other.
  std::vector<ComparedPart> share_parts = {};
  int reads_pictures = 0, reads_labels = 0;  ///< members

  int count() const { return peers == nullptr ? 1 : peers->size(); }
  int place() const { return members == nullptr ? 0 : members->rank(); }
};

}  // namespace lockstep
