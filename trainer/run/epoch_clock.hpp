// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Measurements of an epoch: step times, comparison of ranks, memory. They are no part of the mathematics: a replay
/// ignores them.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/training/strategy.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// Clock readings of one rank. Plain numbers, so that they can be gathered.
struct RankClock {
  double busy_seconds = 0;     ///< in steps, without the next one
  double exposed_seconds = 0;  ///< in steps, its own work done: waiting for communication and other ranks
  std::uint64_t resident = 0, peak_resident = 0;  ///< bytes of the process
  std::uint64_t device = 0, peak_device = 0;      ///< bytes allocated on its GPU; 0: it has none
};

/// Peak memory of a rank's process in bytes, and the part shared with other processes: libraries, and sets of data.
struct RankMemory {
  std::uint64_t peak = 0, shared = 0;
};

/// The peaks of ranks of one host together, where what they share counts once.
std::uint64_t resident_together(std::span<const RankMemory> ranks);

class EpochClock {
 public:
  /// An epoch begins, or goes on after a resume with so many samples.
  void start(const ParallelStrategy& strategy, std::int64_t samples);
  /// A series of steps has ended: each of them took its share.
  void add(std::int64_t steps, double seconds);
  /// Leaves out of the steps' time what was no step: an evaluation, a save.
  void leave_out(std::chrono::duration<double> time) { left_out_ += time; }
  void end_steps() { train_seconds_ = train_seconds(); }

  /// Since start(), with what was left out.
  double seconds() const { return seconds_since(start_); }
  /// Those of the steps, up to now or end_steps().
  double train_seconds() const { return train_seconds_ ? *train_seconds_ : seconds() - left_out_.count(); }
  /// @param samples  of the epoch so far; those before start() are not in its time
  double samples_per_second(std::int64_t samples) const {
    return static_cast<double>(samples - samples_before_) / train_seconds();
  }
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
  Clock::time_point start_{};
  std::chrono::duration<double> left_out_{0};
  std::optional<double> train_seconds_;
  std::int64_t samples_before_ = 0;
};

}  // namespace lockstep
