// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A deadline for MPI's own start and end, where MPI waits for every rank without one.
#pragma once

#include "common/clock.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

/// Where all ranks must come together.
enum class Meeting { kInit, kFinalize };

/// A thread that ends this process with exit code 71 when the ranks do not meet in time: a rank that is
/// stopped, another program in the place of a rank, a host that is gone. First it says which ranks have not
/// come, as far as the processes of this host tell. One rank a host speaks.
///
/// Costs nothing, and does nothing, in a job of one rank.
class RankWatch {
 public:
  /// @param ranks  how many were launched
  explicit RankWatch(int ranks);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// This rank is about to wait for the others. @param limit  from now on
  void expect(Meeting meeting, std::chrono::duration<double> limit);
  /// All have come.
  void met();

 private:
  void watch();

  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false, ending_ = false;
  Meeting meeting_ = Meeting::kInit;
  Clock::time_point deadline_;
  std::chrono::duration<double> limit_{};
  std::thread thread_;
};

}  // namespace lockstep
