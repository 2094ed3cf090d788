// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/support/watchdog.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep::testing {

constexpr int kHangExitCode = 124;

Watchdog::Watchdog(int rank, std::chrono::seconds limit)
    : thread_([this, rank, limit] { watch(rank, limit); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(int rank, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
  fmt::print(stderr, "[rank {}] the test hangs: not done after {} s\n", rank, limit.count());
  std::_Exit(kHangExitCode);  // mpirun ends the other ranks
}

}  // namespace lockstep::testing
