// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ends a test process that hangs. A test of communication fails by waiting forever more often than by a
/// wrong number.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::testing {

/// While it lives, the process has `limit` left; then it says so on standard error and exits with code 124.
class Watchdog {
 public:
  Watchdog(int rank, std::chrono::seconds limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(int rank, std::chrono::seconds limit);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace lockstep::testing
