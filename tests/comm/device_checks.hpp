// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Contract of every DeviceAllReduce: one body of checks, run by each implementation's tests.
#pragma once

#include "comm/device/device_all_reduce.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

/// One rank's side of a check.
struct DeviceRank {
  Communicator& comm;
  Device& device;
  DeviceAllReduce& all_reduce;
};

/// `check` is called on all ranks at the same time; its expectations hold on each of them.
struct DeviceAllReduceCase {
  const char* name;
  void (*check)(const DeviceRank&);
  friend std::ostream& operator<<(std::ostream& out, const DeviceAllReduceCase& c) { return out << c.name; }
};

const std::vector<DeviceAllReduceCase>& device_all_reduce_cases();

}  // namespace lockstep::testing
