// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How long threads that could compute waited for a processor, as the kernel counts it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace lockstep {

/// Of threads that count themselves: each lies in a queue of its own, and what they do together is late by the longest.
/// Without /proc/thread-self/schedstat the wait is 0. Thread-safe.
class ProcessorWait {
 public:
  ProcessorWait() = default;
  ~ProcessorWait();
  ProcessorWait(const ProcessorWait&) = delete;
  ProcessorWait& operator=(const ProcessorWait&) = delete;

  /// The calling one, as long as this lives. Once for each thread.
  void count_this_thread();

  void start();
  /// Nanoseconds, of the thread that waited longest; 0 before start().
  std::int64_t since_start() const;

 private:
  struct Thread {
    int file = -1;  ///< its schedstat
    std::int64_t at_start = 0;
  };

  mutable std::mutex mutex_;
  std::vector<Thread> threads_;
};

}  // namespace lockstep
