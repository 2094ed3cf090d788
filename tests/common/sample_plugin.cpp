// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/common/sample_plugin.hpp"

#include "common/error.hpp"

namespace {

class PoliteGreeter final : public lockstep::test::Greeter {
 public:
  std::string greet(const std::string& name) override {
    if (name.empty()) throw lockstep::UsageError("nobody to greet");
    return "good morning, " + name;
  }
};

}  // namespace

LOCKSTEP_PLUGIN_TAKES_SPELLING

lockstep::test::Greeter* sample_plugin_greeter() {
  return new PoliteGreeter;
}

void sample_plugin_throw(int which) {
  if (which == 0) throw lockstep::DeviceError("device");
  if (which == 1) throw lockstep::PeerLostError("peer");
  LOCKSTEP_CHECK(which < 2);
}

void sample_plugin_advise() {
  throw lockstep::DeviceError(lockstep::advice("use {backend}mpi"));
}
