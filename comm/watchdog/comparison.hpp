// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Takes what every rank notes of its gradients to rank 0, which compares: who holds the others up.
#pragma once

#include "comm/communicator.hpp"
#include "comm/watchdog/heartbeat.hpp"
#include "comm/watchdog/stragglers.hpp"

#include <mutex>
#include <vector>

namespace lockstep::watchdog {

/// On the watchdog's thread, but for scores().
class Comparison {
 public:
  /// Borrows all of them.
  Comparison(Communicator& comm, Heartbeat& heartbeat, const std::vector<Peer>& peers);

  /// To rank 0: what has come together here since the last time. In large jobs not of every step.
  void report();
  /// Rank 0: what another has reported. Says who holds the others up, and which host is too full. Elsewhere nothing happens.
  void add(int rank, std::vector<Arrival> arrivals);

  /// On rank 0.
  std::vector<RankScore> scores() const;

 private:
  Communicator& comm_;
  Heartbeat& heartbeat_;
  const std::vector<Peer>& peers_;
  Stragglers stragglers_;
  mutable std::mutex mutex_;
  std::vector<RankScore> scores_;  ///< under mutex_
};

}  // namespace lockstep::watchdog
