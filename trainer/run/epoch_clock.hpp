// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What clocks and kernels say of an epoch: how long its steps took, how the ranks compare, how much memory they have.
/// No part of the mathematics: a replay sets it aside.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/strategies/strategy.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace lockstep {

/// Of one rank. Plain numbers, so that they can be gathered.
struct RankClock {
  double busy_seconds = 0;     ///< in steps, without the next one
  double exposed_seconds = 0;  ///< in steps, its own work done: waiting for communication and other ranks
  std::uint64_t resident = 0, peak_resident = 0;  ///< bytes of the process
  std::uint64_t device = 0, peak_device = 0;      ///< bytes allocated on its GPU; 0: it has none
};

class EpochClock {
 public:
  /// An epoch begins, or goes on after a resume.
  void start(const ParallelStrategy& strategy);
  /// A series of steps has ended: each of them took its share.
  void add(std::int64_t steps, double seconds);

  /// The seconds that `share` of the steps did not exceed; 0 without steps.
  double percentile(double share) const;
  /// Collective. @param gpu  of this rank; may be null
  std::vector<RankClock> all_ranks(const ParallelStrategy& strategy, const Gpu* gpu,
                                   Communicator& comm) const;
  /// Percentiles, memory of the rank that has most, and of several ranks whose clocks tell it how they compare.
  void add_to(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) const;

 private:
  struct Series {
    double seconds_of_step = 0;
    std::int64_t steps = 0;
  };
  std::vector<Series> series_;
  StepTimes at_start_;
};

}  // namespace lockstep
