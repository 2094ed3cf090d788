// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A lock for sections of a microsecond, which two threads seldom want at once.
#pragma once

#include <atomic>
#include <thread>

namespace lockstep {

/// BasicLockable. Not fair, not recursive. Gives up the core while it waits.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

}  // namespace lockstep
