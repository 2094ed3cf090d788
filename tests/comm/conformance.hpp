// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What every backend of Communicator must do: one body of checks, run by each backend's test.
#pragma once

#include "comm/communicator.hpp"

#include <ostream>
#include <vector>

namespace lockstep::testing {

/// `check` is called on all ranks of a group at the same time; its expectations hold on each of them.
struct ConformanceCase {
  const char* name;
  void (*check)(Communicator&);
  friend std::ostream& operator<<(std::ostream& out, const ConformanceCase& c) { return out << c.name; }
};

const std::vector<ConformanceCase>& conformance_cases();
/// Of the functions of comm/collectives.hpp.
const std::vector<ConformanceCase>& collective_cases();

}  // namespace lockstep::testing
