// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Interface between plugin_test and the plugin it loads.
#pragma once

#include <string>

namespace lockstep::test {

class Greeter {
 public:
  virtual ~Greeter() = default;
  virtual std::string greet(const std::string& name) = 0;
};

}  // namespace lockstep::test

extern "C" {
/// To be deleted by the caller.
lockstep::test::Greeter* sample_plugin_greeter();
/// Throws DeviceError, PeerLostError or InternalError for 0, 1 and 2.
void sample_plugin_throw(int which);
/// Throws a DeviceError with advice in it.
void sample_plugin_advise();
}
